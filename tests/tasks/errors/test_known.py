"""A key that was sent is masked to the letter wherever it comes back. All keys here are made up."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

import pytest

from tasks.errors import Failure, fingerprint, known, mask_secrets

KEY = "wombat-forty-two"
ODD = "p/q+r=s&t<u>'v\"w\\x"


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(known, "_known", {})
    monkeypatch.setattr(known, "_pattern", None)
    known.remember(KEY)
    known.remember(ODD)
    yield


@pytest.mark.parametrize("key", [KEY, ODD])
def test_in_every_form_in_which_it_comes_back(key: str) -> None:
    forms = [key, quote(key), quote(key, safe=""), quote_plus(key), quote(quote(key, safe=""), safe="")]
    forms += [quote(key, safe="").replace("%2F", "%2f").replace("%2B", "%2b"), json.dumps(key)[1:-1]]
    forms += [html.escape(key), json.dumps(json.dumps(key)[1:-1])[1:-1]]
    for form in forms:
        assert mask_secrets(f"no such thing as {form} here") == "no such thing as [masked] here"


@pytest.mark.parametrize("user", ["", "a", "ab", "abc", "user:", "someone:"])
@pytest.mark.parametrize("key", [KEY, ODD])
def test_in_base64_behind_any_user(user: str, key: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(f"{user}{key}:".encode()).decode()
        shown = mask_secrets(f"got {encoded}").removeprefix("got ")
        assert "[masked]" in shown and len(shown) - len("[masked]") < 4 + len(user) * 2 + 4


def test_in_every_part_of_a_failure() -> None:
    failure = Failure(
        exception="a.B",
        message=f"refused: {KEY}",
        http_status=401,
        headers={"x-echo": f"got {KEY}", "www-authenticate": f'Basic realm="{KEY}"'},
        body={"error": {"message": f"I know no {KEY}", "code": KEY, KEY: [KEY, 7], "raw": quote(KEY)}},
        traceback=f'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    call("{KEY}")\na.B: {KEY}',
        cause_chain=(f"c.D: {KEY}",),
    )
    stored = failure.masked()
    assert KEY not in json.dumps(stored.to_json()) and KEY not in stored.last_error
    mark = fingerprint(failure)
    assert KEY not in mark.title and KEY not in mark.normalised


def test_a_key_of_the_shape_of_a_word_is_masked_and_a_dummy_is_not() -> None:
    for dummy in ("none", "ollama", "lm-studio", "abc", ""):
        known.remember(dummy)
    assert mask_secrets("ollama says none of abc to lm-studio") == "ollama says none of abc to lm-studio"
    known.remember("swordfish")
    assert mask_secrets("swordfish refused") == "[masked] refused"


def test_only_so_many_are_kept() -> None:
    keys = [f"key:{number}:" + "/long" * 400 for number in range(40)]
    for key in keys:
        known.remember(key)
    first, last = keys[0], keys[-1]
    assert mask_secrets(f"{last}, {first}!") == f"[masked], {first}!"
