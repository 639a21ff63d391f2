"""What the model is told about a broken answer."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.llm.problems import MAX_PROBLEMS, Problem, describe, problems, repair_message
from tests.tasks.llm.conftest import SCHEMA


def said(value: Any, schema: Any) -> list[str]:
    return [str(problem) for problem in problems(value, schema)]


def test_nothing_wrong() -> None:
    assert problems({"category": "bug", "urgency": 3}, SCHEMA) == []


def test_each_field_with_what_is_expected_and_allowed() -> None:
    assert problems({"category": "Bug", "urgency": 9, "note": 1}, SCHEMA) == [
        Problem("category", "'Bug' is not one of ['billing', 'bug', 'other']", "", ("billing", "bug", "other")),
        Problem("note", "no such field", "only the fields of the schema", ("category", "urgency")),
        Problem("urgency", "9 is greater than the maximum of 5", "integer, at least 1, at most 5"),
    ]


def test_missing_fields_are_named_one_by_one() -> None:
    assert said({}, SCHEMA) == [
        'category: missing (allowed: "billing", "bug", "other")',
        "urgency: missing (expected integer, at least 1, at most 5)",
    ]


def test_references_are_followed() -> None:
    schema = {
        "properties": {"mood": {"$ref": "#/$defs/Mood"}, "list": {"items": {"$ref": "#/$defs/Mood"}}},
        "required": ["mood"],
        "$defs": {"Mood": {"type": "string", "enum": ["calm", "angry"]}},
    }

    assert said({"list": ["calm", "sad"]}, schema) == [
        """list[1]: 'sad' is not one of ['calm', 'angry'] (expected string; allowed: "calm", "angry")""",
        'mood: missing (expected string; allowed: "calm", "angry")',
    ]


def test_a_reference_in_a_circle_ends() -> None:
    schema = {"required": ["a"], "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}

    assert said({}, schema) == ["a: missing"]


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("3", {"type": "integer"}, ["(top level): '3' is not of type 'integer' (expected integer)"]),
        (3.5, {"type": "integer"}, ["(top level): 3.5 is not of type 'integer' (expected integer)"]),
        (True, {"type": "integer"}, ["(top level): True is not of type 'integer' (expected integer)"]),
        (None, {"type": ["null", "integer"]}, []),
        ("b", {"const": "a"}, ["""(top level): 'a' was expected (allowed: "a")"""]),
        ({"a": {"b": [1, "x"]}}, {"properties": {"a": {"properties": {"b": {"items": {"type": "integer"}}}}}},
         ["a.b[1]: 'x' is not of type 'integer' (expected integer)"]),
        ("xxxx", {"type": "string", "maxLength": 3},
         ["(top level): 'xxxx' is too long (expected string, at most 3 characters)"]),
        ([1], {"type": "array", "minItems": 2}, ["(top level): [1] is too short (expected array, at least 2 items)"]),
    ],
)  # fmt: skip
def test_sentences(value: Any, schema: Any, expected: list[str]) -> None:
    assert said(value, schema) == expected


def test_an_optional_value_of_the_wrong_type() -> None:
    schema = {"properties": {"due": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}}}

    assert said({"due": "soon"}, schema) == [
        "due: 'soon' is not valid under any of the given schemas (expected integer, at least 0 or null)"
    ]
    assert said({"due": -1}, schema) == ["due: -1 is less than the minimum of 0 (expected integer, at least 0)"]


def test_the_alternative_that_was_meant_is_explained() -> None:
    def shape(kind: str, **fields: Any) -> dict[str, Any]:
        properties = {"kind": {"const": kind}, **fields}
        return {"type": "object", "properties": properties, "required": list(properties)}

    schema = {"oneOf": [shape("refund", amount={"type": "number"}), shape("reply", text={"type": "string"})]}

    assert said({"kind": "reply"}, schema) == ["text: missing (expected string)"]
    assert said({"kind": "refund", "amount": "5"}, schema) == ["amount: '5' is not of type 'number' (expected number)"]


def test_too_many_alternatives_fit() -> None:
    assert said(3, {"oneOf": [{"type": "integer"}, {"type": "number"}]}) == [
        "(top level): fits several alternatives; exactly one must fit"
    ]


def test_constants_of_all_alternatives_are_allowed() -> None:
    schema = {"anyOf": [{"const": "a"}, {"const": "b"}]}

    assert problems("c", schema)[0].allowed == ("a", "b")


def test_a_huge_value_is_quoted_in_part() -> None:
    (text,) = said("x" * 1_000_000, {"type": "integer"})

    assert len(text) < 400
    assert "is not of type 'integer'" in text


def test_the_list_is_bounded() -> None:
    assert len(problems(["x"] * 1_000, {"items": {"type": "integer"}})) == MAX_PROBLEMS
    assert len(problems({str(n): 1 for n in range(1_000)}, {"additionalProperties": False})) == MAX_PROBLEMS


def test_an_answer_nested_deeper_than_python_goes() -> None:
    value: Any = 1
    for _ in range(900):
        value = [value]

    (problem,) = problems(value, {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}})

    assert problem.message == "nested too deeply to be checked"


def test_objects_among_the_allowed() -> None:
    (problem,) = problems(1, {"enum": [{"a": 1}, [2], "x", None]})

    assert problem.allowed == ('{"a": 1}', "[2]", "x", None)
    assert hash(problem)


def test_the_message_to_the_model() -> None:
    message = repair_message(
        [Problem("urgency", "missing", "integer"), Problem("kind", "no such field", "", ("a", "b"))]
    )

    assert message == (
        "Your answer could not be used:\n"
        "- urgency: missing (expected integer)\n"
        '- kind: no such field (allowed: "a", "b")\n'
        "Answer again with the whole corrected JSON value and nothing else: no prose, no code fence."
    )


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, ""),
        (True, ""),
        (False, "no value"),
        ({"type": "string", "maxLength": 80, "pattern": "^a"},
         'string, at most 80 characters, matching the pattern "^a"'),
        ({"type": ["integer", "null"], "exclusiveMinimum": 0, "multipleOf": 5},
         "integer or null, more than 0, a multiple of 5"),
        ({"type": "object", "required": ["a", "b"]}, "object, with a, b"),
        ({"type": "string", "format": "date"}, 'string, in the format "date"'),
    ],
)  # fmt: skip
def test_describe(schema: Any, words: str) -> None:
    assert describe(schema) == words


def test_a_number_that_no_fraction_divides_is_a_problem() -> None:
    (problem,) = problems({"price": 10**400}, {"properties": {"price": {"multipleOf": 0.01}}})
    assert problem.message == "has a number that is too large to be checked"
