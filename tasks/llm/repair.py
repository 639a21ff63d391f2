"""Mending a broken answer on the spot, before the model is asked again: only what leaves its values untouched.

Fences, prose, a reasoning block, a byte order mark, raw line breaks inside strings and trailing commas are all ways of
wrapping the same value. Nothing is guessed: no quotes or brackets are added, no type is changed, and where two
different values would fit, none is taken.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NoReturn

from tasks.llm.problems import Problem, describe, problems, repair_message
from tasks.llm.schema import validator_for
from tasks.llm.text import shortened, whole_json

__all__ = ["Mended", "Problem", "Unmendable", "mend", "problems", "repair_message", "validator_for"]

MARK = "byte order mark removed"
REASONING = "reasoning block removed"
FENCE = "code fence removed"
PROSE = "text around the JSON removed"
CONTROL = "raw line breaks or tabs inside strings kept"
COMMA = "trailing commas removed"
SURROGATE = "halves of surrogate pairs replaced"

#: How many values are looked for in one answer; more are a sign of text that merely has brackets in it.
MAX_SPANS = 100

_END_OF_REASONING = re.compile(r".*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"(?:^|\n)[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)(?:\n[ \t]*\1|\Z)", re.DOTALL)
_BRACKET = re.compile(r'["\[\]{}]')
# Possessive, and an unclosed string runs to the end: linear on any text.
_IN_STRING = r'[^"\\]*+(?:\\(?:.|\Z)[^"\\]*+)*'
_STRING = re.compile(f'"{_IN_STRING}"', re.DOTALL)
_STRING_OR_COMMA = re.compile(rf'("{_IN_STRING}(?:"|\Z))|,(\s*+[\]}}])', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Mended:
    """The value of an answer, and what had to be done to read it; ``how`` is empty where it was fine as it came."""

    value: Any
    how: list[str] = field(default_factory=list)


class Unmendable(ValueError):
    """The answer has no value that fits the schema; ``problems`` says why, for the model and for people."""

    def __init__(self, found: list[Problem]) -> None:
        self.problems = found
        super().__init__("; ".join(map(str, found)))


def mend(text: str, schema: dict[str, Any] | None) -> Mended:
    """The JSON value in an answer; with a schema, one that fits it. Raises Unmendable."""
    how = []
    text = text.strip()
    if text.startswith("\ufeff"):
        text = text.lstrip("\ufeff").strip()
        how.append(MARK)
    value = _whole(text)
    if value is None and (reasoning := _END_OF_REASONING.match(text)):
        text = text[reasoning.end() :].strip()
        how.append(REASONING)
        value = _whole(text)
    if value is not None:
        return _checked(value, how, schema)
    return _only(list(_inside(text)), how, schema, text)


def _checked(found: Mended, how: list[str], schema: dict[str, Any] | None) -> Mended:
    against = problems(found.value, schema) if schema is not None else []
    if against:
        raise Unmendable(against)
    return Mended(found.value, [*how, *found.how])


def _only(found: list[Mended], how: list[str], schema: dict[str, Any] | None, text: str) -> Mended:
    """The one value among those found that fits, however often it is repeated."""
    fitting = [each for each in found if schema is None or not problems(each.value, schema)]
    different = {json.dumps(each.value, sort_keys=True): each for each in reversed(fitting)}
    if len(different) == 1:
        (only,) = different.values()
        return Mended(only.value, [*how, *only.how])
    expected = describe(schema) if schema is not None else ""
    if different:
        message = f"the answer holds {len(different)} different JSON values that fit; give exactly one"
        raise Unmendable([Problem("(top level)", message, expected)])
    if found:
        raise Unmendable(problems(max(found, key=lambda each: len(str(each.value))).value, schema or {}))
    message = f"{_why_no_json(text)}: {shortened(text, 120)}" if text else "the answer holds no JSON"
    raise Unmendable([Problem("(top level)", message, f"one JSON value: {expected}" if expected else "one JSON value")])


def _inside(text: str) -> Iterator[Mended]:
    """The values in code fences; where there is none, objects and arrays in the text."""
    blocks = islice(_FENCED.finditer(text), MAX_SPANS)
    fenced = [value for block in blocks if (value := _whole(block[2].strip())) is not None]
    if fenced:
        yield from (Mended(value.value, [FENCE, *value.how]) for value in fenced)
        return
    for span in _spans(text):
        if (value := _whole(span)) is not None:
            yield Mended(value.value, [PROSE, *value.how])


def _whole(text: str) -> Mended | None:
    """The text as one JSON value: as it is, else with raw control characters, else without trailing commas."""
    for decoder, source, how in (
        (_STRICT, text, []),
        (_LAX, text, [CONTROL]),
        (_STRICT, None, [COMMA]),
        (_LAX, None, [CONTROL, COMMA]),
    ):
        try:
            source = source if source is not None else _STRING_OR_COMMA.sub(_keep, text)
            return _paired(decoder.decode(source), source, how)
        except (ValueError, RecursionError):
            continue
    return None


def _keep(match: re.Match[str]) -> str:
    return match[1] if match[1] is not None else match[2]


def _paired(value: Any, source: str, how: list[str]) -> Mended:
    if not _SURROGATE_ESCAPE.search(source):
        return Mended(value, how)
    clean = whole_json(value)
    return Mended(clean, how if clean == value else [*how, SURROGATE])


def _spans(text: str) -> Iterator[str]:
    """The outermost bracketed parts of a text. Brackets in strings do not count.

    A bracket that is never closed ends the search: what follows it lies inside a cut value, and a part of a value must
    not pass for the answer.
    """
    position = 0
    for _ in range(MAX_SPANS):
        start = min((at for at in (text.find("{", position), text.find("[", position)) if at >= 0), default=-1)
        end = _closing(text, start) if start >= 0 else -1
        if end < 0:
            return
        yield text[start:end]
        position = end


def _closing(text: str, start: int) -> int:
    """The position after the bracket that closes the one at ``start``, or -1."""
    depth, position = 0, start
    while match := _BRACKET.search(text, position):
        position = match.end()
        if match[0] == '"':
            string = _STRING.match(text, match.start())
            if string is None:
                return -1
            position = string.end()
            continue
        depth += 1 if match[0] in "[{" else -1
        if depth == 0:
            return position
    return -1


def _why_no_json(text: str) -> str:
    try:
        _STRICT.decode(text)
    except RecursionError:
        return "the JSON is nested too deeply"
    except ValueError as error:
        return f"the answer is no JSON ({error})"
    return "the answer is no JSON"


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is larger than a number can be")
    return number


_STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
_LAX = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, strict=False)
