"""Text that can travel: Python strings may hold halves of surrogate pairs, which neither UTF-8 nor PostgreSQL takes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def whole(text: str) -> str:
    """Join surrogate pairs that arrived in two pieces and replace each half that stays alone by U+FFFD.

    A provider that counts in UTF-16 may cut an emoji in two; each chunk then brings one half as a JSON escape.
    """
    if not _SURROGATE.search(text):
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _SURROGATE.sub(_REPLACEMENT, joined)


def whole_json(value: Any) -> Any:
    """The same for every string, key included, of a parsed JSON value (nested no deeper than the parser allows)."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(key): whole_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_json(item) for item in value]
    return value


def shortened(text: str, limit: int = 240) -> str:
    """The text with its middle left out beyond ``limit`` characters; both ends tell what it was."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} … {text[-half:]}"


def deeper_than(limit: int, value: Any) -> bool:
    """Whether lists and objects of parsed JSON stand in each other more than ``limit`` deep; without recursion."""
    level = _nests([value])
    for _level in range(limit):
        level = [nest for outer in level for nest in _nests(outer.values() if isinstance(outer, dict) else outer)]
    return bool(level)


def _nests(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]
