"""A task's payload as a template sees it: read only, and printed as JSON. Nothing of Python's own can be reached."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

#: What counts as large: characters of text and numbers of values.
LARGE_TEXT, LARGE_COUNT = 64 * 1024, 5_000


def is_large(payload: Any) -> bool:
    """Whether a single step over the payload, such as a sort, would keep an event loop waiting. Looks no further."""
    text = count = 0
    waiting = [payload]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            count += len(value)
            waiting.extend(islice(value.values() if isinstance(value, dict) else value, LARGE_COUNT))
        elif isinstance(value, str):
            text += len(value)
        if count > LARGE_COUNT or text > LARGE_TEXT:
            return True
    return False


class JsonObject(Mapping[str, Any]):
    """An object. What it wraps has an underscore, as templates reach no name with one."""

    __slots__ = ("_raw",)

    def __init__(self, raw: dict[str, Any]) -> None:
        self._raw = raw

    def __getitem__(self, key: str) -> Any:
        return readable(self._raw[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return as_json(self)


class JsonArray(Sequence[Any]):
    """An array."""

    __slots__ = ("_raw",)

    def __init__(self, raw: Sequence[Any]) -> None:
        self._raw = raw

    def __getitem__(self, key: Any) -> Any:
        return readable(self._raw[key])

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return as_json(self)


def readable(value: Any) -> Any:
    """The value, an object or array of it wrapped."""
    if isinstance(value, dict):
        return JsonObject(value)
    return JsonArray(value) if isinstance(value, list | tuple) else value


def as_json(value: Any) -> str:
    """The JSON of a value or of what a template sees of it."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    return value._raw if isinstance(value, JsonObject | JsonArray) else str(value)
