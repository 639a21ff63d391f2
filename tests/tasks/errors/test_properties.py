"""Whatever a failure holds, reading it returns, changes nothing and says the same again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.errors import CODES, Failure, classify, fingerprint, mask, mask_secrets, retry_after
from tasks.errors.failure import storable
from tasks.errors.mask import mask_value

FRAGMENTS = st.sampled_from(
    [
        "password=",
        "api_key: '",
        "Bearer ",
        "sk-abcdefghijklmnop1234",
        "://user:pw@host/",
        "@",
        "://",
        "?key=abcdefgh",
        "&",
        '{"error":',
        "'code': '",
        "429",
        "Error code: ",
        "<html>",
        'File "x.py", line 3, in f\n',
        "input_value='",
        "1h2m",
        "token",
        "=",
        "[masked]",
        "[email]",
        "\\",
        "'",
        '"',
        "\n",
        " ",
        ";",
        ",",
        "(",
        ")",
        "try again in ",
        "--password ",
        "+49 171 5550142",
        "a@b.example",
        "4111 1111 1111 1111",
        "Cookie: a=b",
        "tel: 0171 5550142",
        "Authorization: ",
        "eyJabcdefghij.abcdefgh.abc",
        "-----BEGIN PRIVATE KEY-----",
        "\x00",
        "\ud800",
        "中文",
        "GB82WEST12345698765432",
        "password is ",
        "api key ",
        "3f2a9c4be8d71f605a9e2d4c8b7a6f51",
        "hunter2",
        "pw: ",
        "OPENAI_KEY=",
        "ACME_KEY=",
        "x-auth: ",
        "bearer: ",
        "credentials",
        "tokens",
        "%3D",
        "%22",
        "%26",
        "&quot;",
        "->",
        "{",
        "}",
        "[",
        "]",
        '\\"',
        "\\\\",
        "secret",
        ": ",
        "wombat-forty-two",
        "-----END PRIVATE KEY-----",
        "ABCDEFGHIJKLMNOP\n",
        "-u a:b",
        "\u0130",
        "resolve '",
    ]
)
#: Each, repeated, is a text on which a pattern that goes back and forth would not end.
HOSTILE = [
    "password=a;", "key=", "secret={", "token={1", "'", '"', "=", "a", "[", "\\", "://", "&quot;", 'password="',
    'password=\\\\"', "password=\\\\\\'", "?key=", "http://a:b@c ", "Cookie: a=b\n", "cookie: a=", "-u a",
    "--a", "'a@b", "1//0aaaaaaaaaaaaaaaaaaaaaaaaa ", "AAAAAAAAAAAAAAAA ", "-----BEGIN A PRIVATE KEY-----",
    "eyJ", "a@b.cc ", "1 ", "a-", "api key ", "bearer ", " ", "\n", "%22", "<", "<style", 'File "', "a='b' ",
    "password\n", "{'a':", "/a", "a.b.", "::", "input_value='", "try again in 1s", "1h",
    "api_key%3Da%26", "?password=a&", "password=&quot;a", "cookie:a=b", "token: bearer a", "password is ",
]  # fmt: skip
TEXT = st.one_of(st.text(max_size=200), st.lists(st.one_of(FRAGMENTS, st.text(max_size=8)), max_size=14).map("".join))
ANY_TEXT = st.one_of(TEXT, st.binary(max_size=200))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)
STATUS: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.integers(-1, 1100), st.sampled_from([-1, 10**9, 10**40, "429", "x", 429.0, True, b"429", ["429"]])
)
FAILURES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "exception": st.none() | TEXT,
        "message": ANY_TEXT,
        "http_status": STATUS,
        "headers": st.dictionaries(st.sampled_from(["retry-after", "date", "x-ratelimit-reset", "x-ms"]) | TEXT, TEXT),
        "body": JSON | st.binary(max_size=100),
        "traceback": st.none() | ANY_TEXT,
        "provider": st.none() | TEXT,
        "cause_chain": st.lists(TEXT, max_size=4).map(tuple),
    },
)


@given(FAILURES)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_reading_a_failure_always_returns_and_is_pure(parts: dict[str, Any]) -> None:
    failure = Failure(**parts)
    first, again = classify(failure), classify(Failure(**parts))
    assert first.code in CODES and first == again
    mark = fingerprint(failure)
    assert mark == fingerprint(Failure(**parts)) and len(mark.digest) == 16 and mark.title
    hint = retry_after(failure, now=1_800_000_000.0)
    assert hint is None or hint >= 0.1
    assert isinstance(failure.last_error, str)


@given(FAILURES)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_a_stored_failure_is_json_and_comes_back_the_same(parts: dict[str, Any]) -> None:
    stored = Failure(**parts).masked()
    text = json.dumps(stored.to_json(), allow_nan=False, ensure_ascii=False)
    assert "\x00" not in text
    text.encode("utf-8")
    assert Failure.from_json(json.loads(text)).to_json() == stored.to_json()


@given(ANY_TEXT)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_masking_twice_is_masking_once(text: str | bytes) -> None:
    for hide in (mask_secrets, mask):
        once = hide(text)  # type: ignore[arg-type]
        assert hide(once) == once
    assert mask(mask_secrets(text)) == mask(text)  # type: ignore[arg-type]


@given(JSON)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_masking_a_value_twice_is_masking_it_once(value: Any) -> None:
    once = mask_value(storable(value))
    assert mask_value(once) == once
    json.dumps(once, allow_nan=False)


@pytest.mark.parametrize("depth", [13, 41, 400])
@pytest.mark.parametrize("opening", ["[", '{"error":', '{"password":', '[{"token":'])
def test_a_body_of_any_depth_is_read_and_stored(opening: str, depth: int) -> None:
    closing = {"[": "]", "{": "}"}
    text = opening * depth + "1" + "".join(closing[mark] for mark in reversed(opening * depth) if mark in closing)
    for body in (json.loads(text), text):
        failure = Failure(body=body, message=text, cause_chain=(text,))
        assert classify(failure).code in CODES and fingerprint(failure).digest
        json.dumps(failure.masked().to_json())


@pytest.mark.parametrize("unit", [*HOSTILE, *(first + second for first in HOSTILE for second in HOSTILE[:3])])
def test_hostile_texts_of_any_length_come_back(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    once = mask_secrets(text)
    assert mask_secrets(once) == once
    failure = Failure(message=text, body=text, traceback=text, cause_chain=(text,), headers={"retry-after": text})
    assert classify(failure).code in CODES and fingerprint(failure).title
    assert retry_after(failure) is None or retry_after(failure)
    assert len(failure.masked().last_error) <= 16 * 1024


def test_what_is_looked_at_of_a_body_is_bounded() -> None:
    """Lists that share their entries say little and go on for ever."""
    shared: list[Any] = []
    for _ in range(30):
        shared = [shared] * 30
    failure = Failure(message="x", body=shared)
    assert classify(failure).code in CODES and fingerprint(failure).digest
    assert len(json.dumps(failure.masked().to_json())) < 128 * 1024


def test_a_number_that_python_writes_not_is_a_body_all_the_same() -> None:
    failure = Failure(message="x", body={"code": 10**5_000, "error": {"code": -(10**5_000)}})
    assert classify(failure).code in CODES and fingerprint(failure).digest
    json.dumps(failure.masked().to_json())
