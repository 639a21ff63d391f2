"""Files that nobody would write on purpose: each is refused with sentences of one line, and nothing is written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tasks.configuration.load import load
from tasks.configuration.problems import ConfigurationError
from tasks.models import ErrorCode, ErrorRule, Kind, Provider

pytestmark = pytest.mark.django_db
HEX = "0x" + "f" * 5_000


def nested(levels: int) -> str:
    """A JSON Schema of so many objects in each other, two levels each."""
    schema: dict[str, Any] = {}
    for _level in range(levels):
        schema = {"properties": {"a": schema}}
    return json.dumps(schema)


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    return [str(problem) for problem in caught.value.problems]


def kind(key: str, value: str) -> str:
    """A file with one kind that is fine but for one key, on line 3."""
    return f'[[kind]]\nname = "triage"\n{key} = {value}\n' + ('handler = "h"\n' if key != "handler" else "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (kind("max_attempts", "9" * 5_000), "line 3: this is no TOML that can be read: a number has more digits"),
        (kind("max_attempts", HEX), "line 3: kind triage: max_attempts: It is a number of about 6021 digits; it must"),
        (kind("timeout_seconds", HEX), "line 3: kind triage: timeout_seconds: is a number of about 6021 digits"),
        (kind("model", HEX), "line 3: kind triage: model: is a number of about 6021 digits; it must be text"),
        (kind("model", f"[[{HEX}]]"), "line 3: kind triage: model: is a value that is too long to be shown"),
        (kind("model", "{a = [1]}"), 'line 3: kind triage: model: is {"a": [1]}; it must be text'),
        (kind("model", "1979-05-27"), 'line 3: kind triage: model: is "1979-05-27"; it must be text'),
        (kind("stream", "[true]"), "line 3: kind triage: stream: is [true]; it must be true or false"),
        (kind("jitter", "nan"), "line 3: kind triage: jitter: is NaN; it must be an ordinary number"),
        (kind("model", r'"a\u0000b"'), "line 3: kind triage: model: holds a NUL character"),
        (kind("model", r'"a\u001b[2J"'), "line 3: kind triage: model: It holds a control character"),
        (kind("handler", r'"a\nb"'), "line 3: kind triage: handler: It holds a control character"),
        (kind("provider", r'"a\u0000b"'), "line 3: kind triage: provider: holds a NUL character"),
        (kind("provider", '"' + "p" * 100_000 + '"'), "line 3: kind triage: provider: there is no provider 'pppp"),
        (kind("fallback_result", f"'{'9' * 5_000}'"), "a number has 5000 digits; at most 1000 are taken"),
        (kind("fallback_result", f"'{'[' * 501}{']' * 501}'"), "nested too deeply: at most 500 levels"),
        (kind("output_schema", f"'{nested(150)}'"), "line 3: kind triage: output_schema: the schema is nested"),
        (kind("output_schema", f"'{nested(300)}'"), "line 3: kind triage: output_schema: the JSON is nested"),
        (kind("prompt", "'" + "{% if a %}" * 900 + "{% endif %}" * 900 + "'"), "nested more than"),
        ('[[kind]]\nname = ["triage"]\nhandler = "h"\n', 'line 2: kind number 1: name: is ["triage"]; it must be text'),
        ('[[kind]]\nname = "a\\u0000"\nhandler = "h"\n', "line 2: kind number 1: name: holds a NUL character"),
        ('[[kind]]\nname = "a\\u001b[2J"\nhandler = "h"\n', r"line 2: kind 'a\x1b[2J': name: Letters, digits"),
        ('[[error_code]]\ncode = "A\\u0007"\n', r"line 2: error code 'A\x07': code: must be letters"),
        (
            '[[provider]]\nname = "a"\nbase_url = "http://h\\u0001/v1"\n',
            "line 3: provider a: base_url: Give an address",
        ),
        ("[kind]\nname = 'a'\n", "line 1: kind must be written as [[kind]], once for each"),
        ("kind = ['a']\n", "line 1: kind must be written as [[kind]], once for each"),
        ("kind = 7\n", "line 1: kind must be written as [[kind]], once for each"),
        ("[[kinds]]\nname = 'a'\n", "line 1: there is no table 'kinds'; did you mean kind"),
        ("a = " + "[" * 10_000 + "]" * 10_000, "it is nested too deeply"),
        ('[[kind]]\n"' + "k" * 100_000 + '" = 1\nname = "a"\nhandler = "h"\n', "there is no key 'kkkk"),
        ("a\x00b = 1", "line 1, column 2"),
    ],
)
def test_it_is_refused_in_a_sentence(text: str, told: str) -> None:
    found = problems(text)
    assert told in "\n".join(found)
    for sentence in found:
        assert len(sentence) < 800, sentence
        assert len(sentence.splitlines()) == 1
        assert "Traceback" not in sentence
        assert sentence.isprintable()
    assert not Kind.objects.exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[[kind]]\nname = "triage"\nhandler = "h"\n[[kind]]\nname = "TRIAGE"\nhandler = "h"\n',
            "line 5: kind TRIAGE: name: the name 'TRIAGE' differs only in capital letters from 'triage', at number 1",
        ),
        (
            '[[kind]]\nname = "triage"\nhandler = "h"\n[[kind]]\nname = "triage"\nhandler = "h"\n',
            "line 5: kind triage: name: the name 'triage' is used before, at number 1",
        ),
    ],
)
def test_one_name_for_two(text: str, told: str) -> None:
    assert problems(text) == [told]
    assert not Kind.objects.exists()


def test_a_character_that_ends_no_line_of_toml_moves_no_line() -> None:
    separators = "\u2028\x85"
    text = f'[[kind]]\nname = "a"\nhandler = "h"\nprompt = "{separators}"\nmax_attempts = 0\n'
    assert problems(text) == ["line 5: kind a: max_attempts: It is 0; it must be from 1 to 1000."]


def test_all_at_once_writes_nothing() -> None:
    before = ErrorCode.objects.count()
    text = '[[provider]]\nname = "ok"\nbase_url = "http://h/v1"\n[[rule]]\ncode = "AI_OVERLOADED"\nmessage = "x"\n'
    problems(text + kind("max_attempts", HEX))
    assert (Provider.objects.count(), ErrorRule.objects.count(), ErrorCode.objects.count()) == (0, 0, before)
