"""One fault, one fingerprint: members share it, near misses do not."""

from __future__ import annotations

import pytest

from tasks.errors import Failure, fingerprint
from tests.tasks.errors.groups import GROUPS


@pytest.mark.parametrize("name", GROUPS)
def test_members_share_a_fingerprint_and_near_misses_do_not(name: str) -> None:
    members, near_misses = GROUPS[name]
    shared = {fingerprint(member).digest: fingerprint(member).normalised for member in members}
    assert len(shared) == 1, shared
    assert not [other for miss in near_misses if (other := fingerprint(miss)).digest in shared]


def test_the_title_is_one_line_without_ids() -> None:
    error = {"message": "It broke. Include the request ID req_12345678901234567890", "code": "oops"}
    text = f"Error code: 500 - {{'error': {error!r}}}"
    mark = fingerprint(Failure(exception="openai.InternalServerError", message=text, http_status=500))
    assert mark.title == "InternalServerError 500: It broke. Include the request ID <id>"
    assert mark.normalised.splitlines()[-1] == "code=oops"


def test_the_title_keeps_plurals_that_the_fingerprint_does_not_tell_apart() -> None:
    many = fingerprint(Failure(exception="a.B", message="Too many requests: 12 tokens, 3 errors"))
    assert many.title == "B: Too many requests: <n> tokens, <n> errors"
    assert many.digest == fingerprint(Failure(exception="a.B", message="Too many request: 1 token, 1 error")).digest
    caused = fingerprint(Failure(exception="a.B", cause_chain=("c.D: no more attempts",)))
    assert caused.title == "B: caused by c.D: no more attempts"


def test_a_fingerprint_holds_no_secret() -> None:
    mark = fingerprint(
        Failure(message="refused: password='hunter two' key sk-abcdefghijklmnop1234567890 for a@b.example")
    )
    assert "hunter" not in mark.normalised and "sk-abc" not in mark.normalised and "a@b" not in mark.normalised


def test_bytes_and_nothing_have_fingerprints() -> None:
    assert fingerprint(Failure()).title == "Failure without a message"
    assert len(fingerprint(Failure(message=b"\xff\x00")).digest) == 16  # type: ignore[arg-type]


def test_megabytes_are_read_at_their_beginning_and_end() -> None:
    long = "the quick brown fox 12345 " * 50_000
    assert len(fingerprint(Failure(exception="a.B", message=long, body=long)).normalised) < 5_000
