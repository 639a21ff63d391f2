"""One value of a configuration file: from TOML to the model's field, with a sentence where it is of the wrong sort."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from django.db import models

from tasks.llm.schema import check_schema
from tasks.llm.text import deeper_than
from tasks.models.ranges import shown_number

#: Levels of lists and objects in each other, as in payloads and results.
MAX_DEPTH = 500
#: Digits of a whole number in JSON; Python refuses to read or write some thousand.
MAX_DIGITS = 1000
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def read_value(field: models.Field[Any, Any], value: Any) -> Any:
    """The value of ``field`` for what the file has. Raises ValueError with what it is and what it must be.

    A JSON field takes JSON as text, since TOML has no null and orders of its own; a foreign key takes the name.
    """
    if isinstance(field, models.BooleanField):
        return _boolean(value)
    if isinstance(field, models.IntegerField):
        return _whole_number(value)
    if isinstance(field, models.FloatField):
        return _number(value)
    text = _text(value)
    if not isinstance(field, models.JSONField):
        return text
    value = read_json(text)
    return check_schema(text) if field.name == "output_schema" else value


def read_json(text: str) -> Any:
    """Parse JSON text that the database can store. Raises ValueError with a sentence."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_int=_integer)
        again = json.dumps(value, ensure_ascii=False, allow_nan=False)
        again.encode()
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError("the JSON holds a lone surrogate (half a character), which cannot be stored") from error
    except ValueError as error:
        raise ValueError(f"this is not JSON: {error}") from error
    if deeper_than(MAX_DEPTH, value):
        raise ValueError(f"the JSON is nested too deeply: at most {MAX_DEPTH} levels are taken")
    if _NUL.search(again):
        raise ValueError("the JSON holds a NUL character (\\u0000), which cannot be stored")
    return value


def same(field: models.Field[Any, Any], one: Any, other: Any) -> bool:
    """Whether two values of a field are the same; in JSON, true is not 1."""
    if isinstance(field, models.JSONField):
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    return bool(one == other)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has {len(text)} digits; at most {MAX_DIGITS} are taken")
    return int(text)


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return shown_number(value)
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:  # somewhere in it is a number that Python does not write
        return "a value that is too long to be shown"
    return text if len(text) <= 60 else f"{text[:57]}…"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"is {_shown(value)}; it must be text in quotes")
    if "\x00" in value:
        raise ValueError("holds a NUL character, which cannot be stored")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"is {_shown(value)}; it must be true or false, without quotes")
    return value


def _whole_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"is {_shown(value)}; it must be a whole number, without quotes")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"is {_shown(value)}; it must be a number, without quotes")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"is {_shown(value)}; it must be an ordinary number")
    return number
