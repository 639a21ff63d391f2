"""Unknown tables and keys, twins, and text that is no TOML."""

import pytest

from tasks.configuration.document import read_document
from tasks.configuration.keys import KIND, PROVIDER
from tasks.configuration.problems import ConfigurationError


def problems(text: str) -> list[str]:
    return [str(problem) for problem in read_document(text).all_problems()]


def test_rows_keep_their_order_and_values() -> None:
    document = read_document('[[kind]]\nname = "b"\n[[kind]]\nname = "a"\nstream = false\n')
    assert [row.name for row in document.of(KIND)] == ["b", "a"]
    assert document.of(KIND)[1].given == {"name": "a", "stream": False}
    assert document.of(PROVIDER) == []


def test_a_byte_order_mark_is_no_error() -> None:
    assert problems('\ufeff[[provider]]\nname = "a"\n') == []


def test_no_toml_says_where() -> None:
    with pytest.raises(ConfigurationError, match=r"this is no TOML: .*line 2"):
        read_document('[[kind]]\nname = "a\n')


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[kinds]]\n", "line 1: there is no table 'kinds'; did you mean kind?"),
        ("zebra = 1\n", "line 1: there is no table 'zebra'; known: provider, kind, error_code, rule"),
        ('\n[kind]\nname = "a"\n', "line 2: kind must be written as [[kind]], once for each"),
        ("kind = 3\n", "line 1: kind must be written as [[kind]], once for each"),
        (
            '[[kind]]\nname = "a"\nmax_attempt = 3\n',
            "line 3: kind a: max_attempt: there is no key 'max_attempt'; did you mean max_attempts?",
        ),
        (
            '[[rule]]\ncode = "X"\nposition = 1\n',
            "line 3: rule number 1: position: there is no key 'position'; known: code,",
        ),
        (
            '[[kind]]\nname = "a"\n\n[[kind]]\nname = "a"\n',
            "line 5: kind a: name: the name 'a' is used before, at number 1",
        ),
    ],
)
def test_each_mistake_has_its_place(text: str, told: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith(told)


def test_inline_tables_are_read_too() -> None:
    document = read_document('kind = [{name = "a", modle = "m"}]\n')
    (problem,) = document.all_problems()
    assert str(problem) == "line 1: kind a: modle: there is no key 'modle'; did you mean model?"
