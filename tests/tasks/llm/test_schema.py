"""Schemas of answers: checked when configured."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tasks.llm.problems import problems
from tasks.llm.schema import check_schema, json_path, validator_for
from tests.tasks.llm.conftest import SCHEMA


def test_a_good_schema_comes_back_parsed() -> None:
    assert check_schema(json.dumps(SCHEMA)) == SCHEMA


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}},
        {"$id": "https://example.org/s", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": True}},
        {"properties": {"a": {"$ref": "#here"}}, "$defs": {"x": {"$anchor": "here"}}},
        {"properties": {"self": {"$ref": "#"}}},
        {"properties": {"date": {"format": "date-time"}, "unknownKeyword": True}},
        {"patternProperties": {"^[\\u4e00-\\u9fff]+$": {}}},
    ],
)
def test_good_schemas(schema: Any) -> None:
    assert check_schema(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "the schema is no JSON: .*line 1 column 2"),
        ("", "the schema is no JSON"),
        ("[]", "must be a JSON object"),
        ("true", "must be a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"type": "strnig"}', "the schema is wrong at type: 'strnig'"),
        ('{"properties": {"a": {"minimum": "1"}}}', "the schema is wrong at properties.a.minimum: '1' is not of type"),
        ('{"required": "a"}', "the schema is wrong at required"),
        ('{"$schema": "http://json-schema.org/draft-07/schema#"}', "Draft 2020-12; remove"),
        ('{"$schema": 7}', "Draft 2020-12"),
        ('{"properties": {"a": {"$ref": "#/$defs/b"}}}', r"\$ref '#/\$defs/b' leads nowhere"),
        ('{"$ref": "https://example.org/schema.json"}', "leads nowhere"),
        ('{"properties": {"a": {"pattern": "(?=x)y"}}}', r"pattern '\(\?=x\)y' cannot be used: .*RE2"),
        ('{"items": {"patternProperties": {"(a)\\\\1": {}}}}', "cannot be used"),
    ],
)
def test_bad_schemas_say_where_and_why(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_schema(text)


def test_the_network_is_never_asked() -> None:
    with pytest.raises(ValueError, match="leads nowhere"):
        check_schema('{"$ref": "http://127.0.0.1:9/schema.json"}')


def test_a_pattern_cannot_stall() -> None:
    schema = check_schema('{"type": "string", "pattern": "^(a+)+$"}')
    started = time.monotonic()

    found = problems("a" * 50_000 + "b", schema)

    assert time.monotonic() - started < 1
    assert "does not match the pattern '^(a+)+$'" in str(found[0])


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"^(a+)+$": {"type": "null"}}},
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": {"type": "integer"}},
    ],
)
def test_a_pattern_for_names_cannot_stall(schema: Any) -> None:
    started = time.monotonic()

    assert problems({"a" * 28 + "b": 1}, check_schema(json.dumps(schema))) == []

    assert time.monotonic() - started < 1


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"pattern": "^[\\u4e00-\\u9fff]+$"}, "你好", "hello"),
        ({"pattern": r"^\\u0041$"}, r"\u0041", "A"),
        ({"pattern": r"^\d{3}$"}, "123", "123\n"),
        ({"patternProperties": {"^x": {"type": "integer"}}}, {"x1": 1, "y": "s"}, {"x1": "s"}),
        (
            {"properties": {"a": {}}, "patternProperties": {"^x": {}}, "additionalProperties": False},
            {"a": 1, "x1": 1},
            {"b": 1},
        ),
        ({"additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": "s"}),
        ({"format": "date-time"}, "not a date", None),
    ],
)
def test_our_own_keywords(schema: Any, good: Any, bad: Any) -> None:
    assert validator_for(schema).is_valid(good)
    assert bad is None or not validator_for(schema).is_valid(bad)


def test_a_validator_is_made_once() -> None:
    assert validator_for({"type": "object"}) is validator_for({"type": "object"})


@pytest.mark.parametrize(
    ("path", "text"), [([], "(top level)"), (["a"], "a"), (["items", 2, "name"], "items[2].name"), ([0, "a"], "[0].a")]
)
def test_json_path(path: list[Any], text: str) -> None:
    assert json_path(path) == text
