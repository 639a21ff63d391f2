"""Mending on the spot: what is taken, and what must not be."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.llm.repair import COMMA, CONTROL, FENCE, MARK, PROSE, REASONING, SURROGATE, Mended, Unmendable, mend
from tests.tasks.llm.conftest import GOOD, SCHEMA

VALUE = {"category": "bug", "urgency": 3}
OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (GOOD, []),
        (f"  \n{GOOD}\n\n", []),
        (f"\ufeff{GOOD}", [MARK]),
        (f"\n\ufeff\n{GOOD}", [MARK]),
        (f"```json\n{GOOD}\n```", [FENCE]),
        (f"```\n{GOOD}\n```", [FENCE]),
        (f"```JSON5\r\n{GOOD}\r\n```", [FENCE]),
        (f"~~~json\n{GOOD}\n~~~", [FENCE]),
        (f"````json\n{GOOD}\n````", [FENCE]),
        (f"Sure!\n\n  ```json\n{GOOD}\n  ```\nAnything else?", [FENCE]),
        (f"```json\n{GOOD}", [FENCE]),
        (f"```json\n{GOOD}\n```\nAgain:\n```json\n{GOOD}\n```", [FENCE]),
        (f"The answer is {GOOD}. It's a bug [1].", [PROSE]),
        (f"Here is what I'd say: {GOOD}", [PROSE]),
        (f'He said "no" {GOOD}', [PROSE]),
        (f"{GOOD}\n{GOOD}", [PROSE]),
        (f"{GOOD} trailing words", [PROSE]),
        (f"`{GOOD}`", [PROSE]),
        (f"答案如下：{GOOD}。请查收", [PROSE]),
        (f"<think>maybe {{\"category\": \"other\", \"urgency\": 1}}?</think>\n{GOOD}", [REASONING]),
        (f"maybe {{\"category\": \"other\", \"urgency\": 1}}?\n</think>\n```json\n{GOOD}\n```", [REASONING, FENCE]),
        ('{"category": "bug", "urgency": 3,}', [COMMA]),
        ('{"category": "bug",\n "urgency": 3 , \n}', [COMMA]),
        ('```json\n{"category": "bug", "urgency": 3,}\n```', [FENCE, COMMA]),
        ('So: {"category": "bug", "urgency": 3,} ok?', [PROSE, COMMA]),
    ],
)  # fmt: skip
def test_the_same_value_however_it_is_wrapped(text: str, how: list[str]) -> None:
    assert mend(text, SCHEMA) == Mended(VALUE, how)


@pytest.mark.parametrize(
    ("text", "value", "how"),
    [
        ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}, [CONTROL]),
        ('{"a": "one\ntwo",}', {"a": "one\ntwo"}, [CONTROL, COMMA]),
        ('{"a": ",}", "b": [1,],}', {"a": ",}", "b": [1]}, [COMMA]),
        (r'{"a": "quote \", ]", "b": "\\",}', {"a": 'quote ", ]', "b": "\\"}, [COMMA]),
        ('see {"a": "} \\" {"} end', {"a": '} " {'}, [PROSE]),
        (r'{"a": "\ud83d\ude00"}', {"a": "😀"}, []),
        (r'{"a": "x\uD83D"}', {"a": "x\ufffd"}, [SURROGATE]),
        (r'{"a": "\\ud83d"}', {"a": "\\ud83d"}, []),
        ('{"a": "```json\\n{}\\n```"}', {"a": "```json\n{}\n```"}, []),
        ('{"a": "</think>"}', {"a": "</think>"}, []),
        ('{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}, []),
    ],
)
def test_values_stay_as_they_were_meant(text: str, value: Any, how: list[str]) -> None:
    assert mend(text, OBJECT) == Mended(value, how)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("5", {"type": "integer"}, 5),
        ("null", {"type": "null"}, None),
        ("false", {"type": "boolean"}, False),
        ('"text"', {"type": "string"}, "text"),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ("```\n5\n```", {"type": "integer"}, 5),
        ("5.0", {"type": "integer"}, 5.0),
    ],
)
def test_any_json_value_may_be_asked_for(text: str, schema: Any, value: Any) -> None:
    assert mend(text, schema).value == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the answer holds no JSON"),
        ("no idea", "the answer is no JSON"),
        ('{"category": "bug", "urgency": "3"}', "urgency: '3' is not of type 'integer'"),
        ('{"category": "Bug", "urgency": 3}', "category: 'Bug' is not one of"),
        ("[" + GOOD + "]", "is not of type 'object'"),
        (json.dumps(GOOD), "is not of type 'object'"),
        ("{'category': 'bug', 'urgency': 3}", "the answer is no JSON"),
        ("{category: 'bug', urgency: 3}", "the answer is no JSON"),
        ('{"category": "bug", "urgency": 3', "the answer is no JSON"),
        ('{"category": "bug", "urgency": True}', "the answer is no JSON"),
        ('{"category": "bug", "urgency": NaN}', "NaN is no JSON number"),
        ('{"category": "bug", "urgency": -Infinity}', "-Infinity is no JSON number"),
        ('{"category": "bug", "urgency": 1e999}', "1e999 is larger than a number can be"),
        ('{"category": "bug", "urgency": ' + "9" * 5_000 + "}", "the answer is no JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"category": "bug", , "urgency": 3}', "the answer is no JSON"),
        # A part of a cut value must not pass for the answer.
        ('{"old": {"category": "bug", "urgency": 3}, "new": {"categ', "the answer is no JSON"),
        (f"[{GOOD} {GOOD}", "the answer is no JSON"),
        # Which of two was meant is not ours to say.
        (f'{GOOD} or {{"category": "other", "urgency": 1}}', "2 different JSON values that fit; give exactly one"),
        (f'```\n{GOOD}\n```\n```\n{{"category": "other", "urgency": 1}}\n```', "2 different JSON values"),
        ('Well: {"category": "bug"}', "urgency: missing"),
    ],
)
def test_what_is_sent_back_instead(text: str, said: str) -> None:
    with pytest.raises(Unmendable) as caught:
        mend(text, SCHEMA)

    assert said in str(caught.value)
    assert caught.value.problems
    assert len(str(caught.value)) < 2_000


def test_an_inner_value_does_not_stand_for_a_broken_outer_one() -> None:
    with pytest.raises(Unmendable):
        mend('I say {name: "x", "data": {"a": 1}}', OBJECT)


def test_without_a_schema_any_json_will_do() -> None:
    assert mend("so: [1]", None) == Mended([1], [PROSE])


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_what_is_json_is_never_touched(value: Any) -> None:
    assert mend(json.dumps(value), {}) == Mended(value, [])
    assert mend(json.dumps(value, ensure_ascii=False, indent=1), {}) == Mended(value, [])


@given(st.dictionaries(st.text('ab"{}[],\\`\n', max_size=5), st.text('ab"{}[],\\`\n</think>', max_size=12), min_size=1))
def test_wrapping_is_undone_exactly(value: dict[str, str]) -> None:
    text = json.dumps(value)

    assert mend(f"Here:\n```json\n{text}\n```\n", OBJECT).value == value
    assert mend(f"Here: {text} that's it", OBJECT).value == value


@pytest.mark.parametrize(
    "text",
    [
        "{" * 1_000_000,
        '{"a": ' * 200_000,
        '"' + '\\"' * 500_000,
        '{"a": "' + '\\"' * 500_000,
        "{} " * 300_000,
        "[1] " * 300_000,
        "```\n" * 200_000,
        "," * 1_000_000,
        "{,}" * 300_000,
        " " * 1_000_000 + "x",
        "</think>" * 100_000,
    ],
    ids=range(11),
)
def test_a_degenerate_megabyte_is_refused_fast(text: str) -> None:
    started = time.monotonic()

    with pytest.raises(Unmendable):
        mend(text, SCHEMA)

    assert time.monotonic() - started < 3
