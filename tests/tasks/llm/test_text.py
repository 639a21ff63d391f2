from __future__ import annotations

import json

import pytest

from tasks.llm.text import shortened, whole, whole_json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("你好 😀", "你好 😀"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d", "\ufffd"),
        ("a\ude00b\ud83d", "a\ufffdb\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
    ],
)
def test_whole(text: str, expected: str) -> None:
    assert whole(text) == expected
    assert whole(text).encode("utf-8")


def test_whole_json_reaches_keys_and_depths() -> None:
    value = json.loads(r'{"\ud83d": ["\ude00", {"a": "\ud83d\ude00"}], "n": 1.5}')

    assert whole_json(value) == {"\ufffd": ["\ufffd", {"a": "😀"}], "n": 1.5}


def test_shortened_keeps_both_ends() -> None:
    assert shortened("x" * 240) == "x" * 240
    assert shortened("a" * 500 + "end", 10) == "aaaaa … aaend"
