"""What is written is read back as it was."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.configuration.toml import toml_table, toml_value

TEXT = st.text(st.characters(exclude_categories=("Cs",)))
# quotes, backslashes and line ends in every order are where writers of TOML go wrong
TRICKY = st.text(st.sampled_from('"\\\n\r\t \x00\x7fn'))


@given(st.one_of(TEXT, TRICKY, st.integers(-(2**62), 2**62), st.booleans(), st.floats(allow_nan=False)))
def test_any_value_comes_back(value: str | bool | int | float) -> None:
    back = tomllib.loads(f"key = {toml_value(value)}\n")["key"]
    assert back == value
    assert type(back) is type(value)


def test_text_of_several_lines_stays_readable() -> None:
    assert toml_value('Dear {{ name }},\n\nsay "hello".\n') == '"""\nDear {{ name }},\n\nsay "hello".\n"""'


@pytest.mark.parametrize("text", ['a\n"', 'a\n"""', 'a\n""""b', "a\n\\", "a\r\nb", "\na\nb\n"])
def test_ends_that_look_like_the_end(text: str) -> None:
    assert tomllib.loads(f"key = {toml_value(text)}\n")["key"] == text


def test_a_table() -> None:
    assert toml_table("kind", {"name": "a", "stream": False}) == '[[kind]]\nname = "a"\nstream = false\n'
