"""Writing TOML: tables of text, numbers and yes/no, which is all that a configuration has."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f]')
#: Within text over several lines, line ends and tabs stand for themselves.
_ESCAPED_LONG = re.compile(r"[\x00-\x08\x0b-\x1f\\\x7f]|\"\"(?=\")|\"\Z")


def toml_table(name: str, values: Mapping[str, str | bool | int | float]) -> str:
    """One ``[[name]]`` with its keys, ending in a line end."""
    lines = (f"{key} = {toml_value(value)}\n" for key, value in values.items())
    return f"[[{name}]]\n{''.join(lines)}"


def toml_value(value: str | bool | int | float) -> str:
    """The value as TOML; text of more than one line is written over as many lines."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    if "\n" in value.strip("\n"):
        return f'"""\n{_ESCAPED_LONG.sub(_escape, value)}"""'
    return f'"{_ESCAPED.sub(_escape, value)}"'


def _escape(match: re.Match[str]) -> str:
    return "".join(_SHORT.get(character) or f"\\u{ord(character):04x}" for character in match[0])
