"""Whatever schema is asked for, the value fits it; spoilt, it does not."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tasks.demo.kinds import TRIAGE_SCHEMA
from tasks.demo.schema import Unsatisfiable, find_schema, generate, spoil

NAMES = st.sampled_from(["category", "count", "items", "note", "när", "数量"])


def strings() -> st.SearchStrategy[dict[str, Any]]:
    """Texts: lengths, formats, enums."""
    bounds = st.tuples(st.integers(0, 20), st.integers(0, 60))
    lengths = bounds.map(lambda pair: {"type": "string", "minLength": pair[0], "maxLength": pair[0] + pair[1]})
    formats = st.sampled_from(["date", "date-time", "email", "uuid", "uri", "ipv4"])
    return st.one_of(
        lengths,
        formats.map(lambda name: {"type": "string", "format": name}),
        st.lists(st.text(max_size=8), min_size=1, max_size=4, unique=True).map(lambda values: {"enum": values}),
        st.sampled_from([{"type": "string", "pattern": r"^T-\d{4}$"}, {"type": "string", "pattern": "^[a-z]+$"}]),
    )


def numbers() -> st.SearchStrategy[dict[str, Any]]:
    """Numbers: bounds, open and closed, and steps."""
    kind, low, width = st.sampled_from(["integer", "number"]), st.integers(-1000, 1000), st.integers(3, 500)
    closed = st.tuples(kind, low, width).map(lambda t: {"type": t[0], "minimum": t[1], "maximum": t[1] + t[2]})
    opened = st.tuples(kind, low, width).map(
        lambda t: {"type": t[0], "exclusiveMinimum": t[1], "exclusiveMaximum": t[1] + t[2]}
    )
    half = st.tuples(kind, st.sampled_from(["minimum", "exclusiveMaximum"]), low).map(
        lambda t: {"type": t[0], t[1]: t[2]}
    )
    stepped = st.integers(1, 50).map(lambda step: {"type": "integer", "multipleOf": step, "minimum": -200})
    return st.one_of(closed, opened, half, stepped)


def leaves() -> st.SearchStrategy[Any]:
    """Schemas without parts."""
    plain = st.sampled_from([True, {}, {"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}])
    constants = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)).map(lambda v: {"const": v})
    return st.one_of(strings(), numbers(), plain, constants)


def nested(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects, arrays and choices over ``parts``."""
    return st.one_of(objects(parts), arrays(parts), choices(parts))


@st.composite
def objects(draw: st.DrawFn, parts: st.SearchStrategy[Any]) -> dict[str, Any]:
    """An object, some of whose properties are required."""
    properties = draw(st.dictionaries(NAMES, parts, max_size=4))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    schema = {"type": "object", "properties": properties, "required": required}
    return schema | draw(
        st.sampled_from([{}, {"additionalProperties": False}, {"minProperties": 1}, {"minProperties": 5}])
    )


@st.composite
def arrays(draw: st.DrawFn, parts: st.SearchStrategy[Any]) -> dict[str, Any]:
    """An array with bounds, a fixed beginning or something that it has to contain."""
    least = draw(st.integers(0, 3))
    schema: dict[str, Any] = {"type": "array", "minItems": least, "maxItems": least + draw(st.integers(0, 3))}
    match draw(st.sampled_from(["items", "prefix", "contains"])):
        case "items":
            schema["items"] = draw(parts)
        case "prefix":
            schema["prefixItems"] = draw(st.lists(parts, min_size=1, max_size=2))
        case "contains":
            schema["contains"] = draw(parts)
            schema["maxItems"] += 1
    return schema


@st.composite
def choices(draw: st.DrawFn, parts: st.SearchStrategy[Any]) -> dict[str, Any]:
    """anyOf and allOf."""
    if draw(st.booleans()):
        return {"anyOf": draw(st.lists(parts, min_size=1, max_size=3))}
    return {"allOf": [draw(parts), True]}


SCHEMAS = st.recursive(leaves(), nested, max_leaves=8)


@given(schema=SCHEMAS, seed=st.integers(0, 10**6))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_generated_value_fits_its_schema(schema: Any, seed: int) -> None:
    value = generate(schema, Random(seed))
    Draft202012Validator(schema).validate(json.loads(json.dumps(value)))


@given(schema=SCHEMAS, seed=st.integers(0, 10**6))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_seed_gives_the_same_value_and_a_spoilt_one_does_not_fit(schema: Any, seed: int) -> None:
    value = generate(schema, Random(seed))
    assert generate(schema, Random(seed)) == value
    try:
        spoilt = spoil(value, schema, Random(seed))
    except Unsatisfiable:
        assert all(Draft202012Validator(schema).is_valid(one) for one in (None, [], 12345, "none of the above"))
    else:
        assert not Draft202012Validator(schema).is_valid(spoilt)


@pytest.mark.parametrize("seed", range(20))
def test_recursive_and_referring_schemas_come_to_an_end(seed: int) -> None:
    schema = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                },
            }
        },
    }
    Draft202012Validator(schema).validate(generate(schema, Random(seed)))


@pytest.mark.parametrize("seed", range(20))
def test_oneof_fits_one_branch_only(seed: int) -> None:
    schema = {"oneOf": [{"type": "integer", "minimum": 0, "maximum": 9}, {"type": "integer", "multipleOf": 5}]}
    Draft202012Validator(schema).validate(generate(schema, Random(seed)))


@pytest.mark.parametrize("seed", range(20))
def test_unique_items_do_not_repeat(seed: int) -> None:
    schema = {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 3, "maxItems": 3, "uniqueItems": True}
    assert sorted(generate(schema, Random(seed))) == ["a", "b", "c"]


def test_a_suggestion_is_taken_where_it_fits_only() -> None:
    def suggest(name: str, _schema: Any) -> Any:
        return {"category": "billing", "urgency": "much"}.get(name)

    value = generate(
        {
            "type": "object",
            "required": ["category", "urgency"],
            "properties": {"category": {"type": "string"}, "urgency": {"enum": ["low", "high"]}},
        },
        Random(1),
        suggest,
    )
    assert value["category"] == "billing"
    assert value["urgency"] in {"low", "high"}


@pytest.mark.parametrize(
    "schema",
    [
        False,
        None,
        "string",
        {"type": "strin"},
        {"type": "string", "pattern": "["},
        {"type": "string", "enum": [1, 2]},
        {"$ref": "#/$defs/missing"},
        {"$ref": "https://schema.example/person"},
        {"type": "object", "required": ["self"], "properties": {"self": {"$ref": "#"}}},
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"type": "array", "items": False, "minItems": 1},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
    ],
    ids=json.dumps,
)
def test_what_cannot_be_answered_is_said_so(schema: Any) -> None:
    with pytest.raises(Unsatisfiable):
        generate(schema, Random(1))


def test_spoiling_breaks_a_closed_list_first() -> None:
    spoilt = spoil(generate(TRIAGE_SCHEMA, Random(3)), TRIAGE_SCHEMA, Random(3))
    assert spoilt["category"] == "other (see text)"
    assert not Draft202012Validator(TRIAGE_SCHEMA).is_valid(spoilt)


def test_a_schema_is_found_in_a_prompt_by_its_name_or_its_looks() -> None:
    named = 'The data: {"a": 1}. It must fit this JSON Schema:\n{"type": "integer"}\nThanks.'
    assert find_schema(named) == {"type": "integer"}
    looks = 'Use {braces} or {"a": 1}, and answer like {"type": "object", "properties": {"n": {"type": "null"}}}.'
    assert find_schema(looks) == {"type": "object", "properties": {"n": {"type": "null"}}}
    assert find_schema('Ticket {"type": "complaint", "text": "{{{"}') is None
