"""Each sort of value, and the sentence where it is of another sort."""

import re
from typing import Any

import pytest

from tasks.configuration.keys import KIND
from tasks.configuration.values import read_value, same


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("model", "m", "m"),
        ("provider", "p", "p"),
        ("stream", False, False),
        ("max_attempts", 4, 4),
        ("jitter", 1, 1.0),
        ("temperature", 0.5, 0.5),
        ("output_schema", '{"type": "object"}', {"type": "object"}),
        ("fallback_result", "[1, null]", [1, None]),
        ("fallback_result", r'"\\u0000 spelled out"', "\\u0000 spelled out"),
    ],
)
def test_good_values(key: str, value: Any, read: Any) -> None:
    assert read_value(KIND.field(key), value) == read


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("model", 3, "is 3; it must be text in quotes"),
        ("model", "a\x00b", "NUL character"),
        ("stream", 1, "is 1; it must be true or false"),
        ("stream", "false", 'is "false"; it must be true or false'),
        ("max_attempts", 2.5, "is 2.5; it must be a whole number"),
        ("max_attempts", True, "is true; it must be a whole number"),
        ("max_attempts", "3", 'is "3"; it must be a whole number'),
        ("jitter", "0.5", 'is "0.5"; it must be a number'),
        ("jitter", float("nan"), "must be an ordinary number"),
        ("timeout_seconds", 10**400, "must be an ordinary number"),
        ("output_schema", {"type": "object"}, "it must be text in quotes"),
        ("output_schema", "{", "this is not JSON"),
        ("output_schema", '{"type": "sting"}', "the schema is wrong at type"),
        ("output_schema", "[]", "must be a JSON object"),
        ("fallback_result", "NaN", "NaN is no JSON number"),
        ("fallback_result", r'"\u0000"', "NUL character"),
        ("fallback_result", r'{"\ud800": 1}', "lone surrogate"),
        ("fallback_result", "[" * 100_000, "nested too deeply"),
    ],
)
def test_bad_values(key: str, value: Any, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        read_value(KIND.field(key), value)


def test_in_json_true_is_not_one() -> None:
    schema = KIND.field("output_schema")
    assert not same(schema, {"const": 1}, {"const": True})
    assert same(schema, {"a": 1, "b": 2}, {"b": 2, "a": 1})
