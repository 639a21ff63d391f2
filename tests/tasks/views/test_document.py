"""Stored values as text: the same JSON, indented; masked; never longer than a page should hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.states import Status
from tasks.views.document import MOST_SHOWN, indented, masked_text, stored_text
from tests.factories import make_task

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_indented_is_the_same_value(value: Any) -> None:
    assert json.loads(indented(json.dumps(value, ensure_ascii=False))) == value


def test_each_item_has_its_line() -> None:
    assert indented('{"a": [1, "x, y"], "b": {}}') == '{\n  "a": [\n    1,\n    "x, y"\n  ],\n  "b": {}\n}'


@pytest.mark.parametrize("text", ['{"a": [1, 2', '"an open text', '[[[["\\', "]]}", ""])
def test_the_beginning_of_a_text_is_shown_too(text: str) -> None:
    assert "".join(indented(text).split()) == "".join(text.split())


def test_hostile_depth_and_length_stay_bounded() -> None:
    assert len(indented("[" * 1_000_000)) < MOST_SHOWN + 10_000
    assert len(masked_text("x" * 3_000_000)) < MOST_SHOWN + 100


def test_a_secret_across_the_cut_is_not_shown_in_half() -> None:
    secret = "sk-proj-" + "Ab1" * 16
    text = "y" * (MOST_SHOWN - 11) + " " + secret + " tail" * 3_000
    assert "sk-proj-" not in masked_text(text)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        ({"deep": {"api_key": "abcd1234efgh"}}, '{\n  "deep": {\n    "api_key": "[masked]"\n  }\n}'),
        ("line one\nline two", "line one\nline two"),
        (None, "null"),
        (1e300, "1" + "0" * 300),
    ],
)
def test_a_stored_value(payload: Any, shown: str) -> None:
    task = make_task(Status.READY, payload=payload)
    assert stored_text(task.pk, "payload") == shown
