"""Single values for a JSON Schema: numbers, texts, and two schemas made one. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from tasks.demo.phrases import phrases


def seeded(text: str) -> Random:
    """A source of chance that gives the same for the same text, in every process."""
    return Random(text)  # noqa: S311 -- repeatable is what is wanted here; nothing depends on its being secret


def _word(random: Random) -> str:
    return str(random.choice(phrases()["words"]))


def _moment(random: Random) -> datetime:
    return datetime(2026, 1, 5, 8, tzinfo=UTC) + timedelta(minutes=random.randrange(500_000))


FORMATS: dict[str, Callable[[Random], str]] = {
    "date-time": lambda random: _moment(random).isoformat().replace("+00:00", "Z"),
    "date": lambda random: _moment(random).date().isoformat(),
    "time": lambda random: _moment(random).time().isoformat() + "Z",
    "email": lambda random: f"{_word(random)}@{_word(random)}.example",
    "hostname": lambda random: f"{_word(random)}.example",
    "uri": lambda random: f"https://{_word(random)}.example/{_word(random)}",
    "uuid": lambda random: str(UUID(int=random.getrandbits(128), version=4)),
    "ipv4": lambda random: f"192.0.2.{random.randrange(1, 255)}",
}


def draw_string(schema: Mapping[str, Any], random: Random) -> str | None:
    """A text of the wanted length (code points), format or pattern; None where none was found."""
    least = schema.get("minLength", 0)
    most = schema.get("maxLength", max(least, 60))
    if "pattern" in schema:
        # A pattern that no sample fits is not served.
        fitting = [
            text for text in phrases()["samples"] if re.search(schema["pattern"], text) and least <= len(text) <= most
        ]
        return str(random.choice(fitting)) if fitting else None
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]](random)
    return _words(random, least, most) if least <= most else None


def _words(random: Random, least: int, most: int) -> str:
    text = " ".join(_word(random) for _ in range(random.randint(1, 4)))
    while len(text) < least:
        text += " " + _word(random)
    return text if len(text) <= most else text[:most].rstrip().ljust(least, "s")


def draw_number(schema: Mapping[str, Any], random: Random, *, whole: bool) -> float | int | None:
    """A number within the bounds; None where none was found."""
    low, high = _bounds(schema)
    if low > high:
        return None
    step = schema.get("multipleOf")
    if step:
        return _multiple(low, high, step, random, whole=whole)
    if whole:
        first, last = math.ceil(low), math.floor(high)
        first += first == schema.get("exclusiveMinimum")
        last -= last == schema.get("exclusiveMaximum")
        return random.randint(first, last) if first <= last else None
    number = random.uniform(low, high)
    rounded = round(number, 2)
    return rounded if low < rounded < high else number


def _multiple(low: float, high: float, step: float, random: Random, *, whole: bool) -> float | int | None:
    first, last = math.ceil(low / step), math.floor(high / step)
    if first > last:
        return None
    number = random.randint(first, last) * step
    return int(number) if whole and number == int(number) else number


def _bounds(schema: Mapping[str, Any]) -> tuple[float, float]:
    """The closed range to draw from. A bound that is not given lies 100 beyond the other, or 0 and 100."""
    lows = [schema[word] for word in ("minimum", "exclusiveMinimum") if _is_number(schema.get(word))]
    highs = [schema[word] for word in ("maximum", "exclusiveMaximum") if _is_number(schema.get(word))]
    if lows and highs:
        return max(lows), min(highs)
    if lows:
        return max(lows), max(lows) + 100
    if highs:
        return min(highs) - 100, min(highs)
    return 0, 100


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def merge(left: Any, right: Any) -> Any:
    """One schema that asks for what both ask for, as far as the words the generator steers by go."""
    if left is False or right is False:
        return False
    if not isinstance(left, dict):
        return right
    if not isinstance(right, dict):
        return left
    merged = {**left, **right}
    for word in left.keys() & right.keys():
        if word in MERGERS:
            merged[word] = MERGERS[word](left[word], right[word])
    return merged


def _merge_types(left: Any, right: Any) -> Any:
    lefts, rights = (one if isinstance(one, list) else [one] for one in (left, right))
    both = [kind for kind in lefts if kind in rights or (kind == "integer" and "number" in rights)]
    both += ["integer"] if "number" in lefts and "integer" in rights and "integer" not in both else []
    return both[0] if len(both) == 1 else both


def _merge_properties(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return {**left, **right, **{name: merge(left[name], right[name]) for name in left if name in right}}


MERGERS: dict[str, Callable[[Any, Any], Any]] = {
    "type": _merge_types,
    "properties": _merge_properties,
    "required": lambda left, right: list(dict.fromkeys([*left, *right])),
    "enum": lambda left, right: [value for value in left if value in right],
    "anyOf": lambda left, right: [merge(one, other) for one in left for other in right],
    "oneOf": lambda left, right: [merge(one, other) for one in left for other in right],
    "allOf": lambda left, right: [*left, *right],
    "items": merge,
    "additionalProperties": merge,
    "minimum": max,
    "exclusiveMinimum": max,
    "minLength": max,
    "minItems": max,
    "minProperties": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
}
