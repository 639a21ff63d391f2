"""Exceptions of real libraries become a Failure; what is stored is cut, clean and without secrets."""

from __future__ import annotations

import asyncio
import json

import httpx2
import openai
import pytest

from tasks.errors import Failure, classify
from tasks.errors.failure import BODY_BYTES, LAST_ERROR_BYTES, TRACEBACK_BYTES
from tasks.errors.faults import AnswerTruncated, StreamCut

REQUEST = httpx2.Request("POST", "https://api.example/v1/chat/completions")


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """``error`` as it is caught: raised, with a traceback, from ``cause``."""
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def status_error(status: int, body: object, headers: dict[str, str] | None = None) -> openai.APIStatusError:
    content = body if isinstance(body, str) else json.dumps(body)
    response = httpx2.Response(status, request=REQUEST, headers=headers, text=content)
    client = openai.OpenAI(api_key="none", base_url="https://api.example/v1", max_retries=0)
    error = client._make_status_error_from_response(response)
    client.close()
    return error


def test_an_sdk_status_error_brings_status_headers_and_body() -> None:
    error = status_error(
        429, {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, {"Retry-After": "2"}
    )
    failure = Failure.from_exception(raised(error), provider="acme")
    assert failure.exception == "openai.RateLimitError"
    assert (failure.http_status, failure.headers["retry-after"], failure.provider) == (429, "2", "acme")
    assert isinstance(failure.body, dict) and failure.body["code"] == "rate_limit_exceeded"
    assert classify(failure).code == "AI_RATE_LIMITED"


def test_an_html_page_is_read_from_the_sdk_error() -> None:
    failure = Failure.from_exception(status_error(502, "<html><head><title>502 Bad Gateway</title></head></html>"))
    assert classify(failure).code == "AI_UPSTREAM_5XX"


def test_the_cause_chain_tells_refused_from_untrusted() -> None:
    refused = raised(
        httpx2.ConnectError("[Errno 111] Connection refused"), ConnectionRefusedError(111, "Connection refused")
    )
    failure = Failure.from_exception(raised(openai.APIConnectionError(request=REQUEST), refused))
    assert failure.cause_chain == (
        "httpx2.ConnectError: [Errno 111] Connection refused",
        "builtins.ConnectionRefusedError: [Errno 111] Connection refused",
    )
    assert classify(failure).code == "AI_CONNECTION_FAILED"


def test_a_wrapper_without_a_status_takes_that_of_its_cause() -> None:
    failure = Failure.from_exception(
        raised(RuntimeError("the summary failed"), status_error(401, {"error": {"message": "no"}}))
    )
    assert failure.http_status == 401 and classify(failure).code == "AI_AUTH_FAILED"


def test_a_timeout_over_its_cancelled_error() -> None:
    async def late() -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError) as caught:
        asyncio.run(late())
    failure = Failure.from_exception(caught.value)
    # Python 3.11.2 does not say what it made the TimeoutError of.
    assert failure.cause_chain in ((), ("asyncio.exceptions.CancelledError: ",))
    assert classify(failure).code == "AI_MODEL_TIMEOUT"


def test_the_leaves_of_a_group_are_its_causes() -> None:
    failure = Failure.from_exception(
        ExceptionGroup("unhandled errors", [ConnectionResetError(104, "reset"), ValueError("x")])
    )
    assert failure.cause_chain == ("builtins.ConnectionResetError: [Errno 104] reset", "builtins.ValueError: x")


def test_a_dict_response_as_botocore_has_it() -> None:
    error = RuntimeError("An error occurred (ThrottlingException) when calling the Converse operation: slow")
    metadata = {"HTTPStatusCode": 429, "HTTPHeaders": {"Retry-After": "3"}}
    error.response = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": metadata}  # type: ignore[attr-defined]
    failure = Failure.from_exception(error)
    assert (failure.http_status, failure.headers, failure.body) == (
        429,
        {"retry-after": "3"},
        {"Error": {"Code": "ThrottlingException"}},
    )


class Hostile(Exception):
    """An exception whose every part fails when it is read."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    @property
    def response(self) -> object:
        raise RuntimeError("no response")


def test_an_exception_that_cannot_be_shown_is_still_captured() -> None:
    failure = Failure.from_exception(raised(Hostile()))
    assert "cannot be shown" in failure.message and failure.traceback


def test_a_ring_of_causes_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert Failure.from_exception(first).cause_chain == ("builtins.ValueError: second",)


def test_stored_parts_are_cut_with_a_mark_and_hold_no_secret() -> None:
    secret = "sk-abcdefghijklmnop1234567890"
    filler = "a word " * 20_000
    at_the_cut = f"{'x' * (LAST_ERROR_BYTES - 50)} {secret} {filler}"
    failure = Failure(
        exception="a.B",
        message=at_the_cut,
        body=filler + secret,
        traceback=f"{secret}{filler}the end {secret}",
        headers={"authorization": f"Bearer {secret}", "x-request-id": "req_1"},
        cause_chain=(f"c.D: {secret}",),
    )
    stored = failure.masked()
    text = json.dumps(stored.to_json())
    assert "sk-abc" not in text and "req_1" in text
    for part, limit in (
        (stored.message, LAST_ERROR_BYTES),
        (stored.body, BODY_BYTES),
        (stored.traceback, TRACEBACK_BYTES),
    ):
        assert isinstance(part, str) and len(part.encode()) <= limit and "bytes in all]" in part
    assert stored.traceback and "the end" in stored.traceback
    assert len(failure.last_error.encode()) <= LAST_ERROR_BYTES


def test_a_large_json_body_is_stored_as_the_beginning_of_its_text() -> None:
    stored = Failure(body={"error": "x" * BODY_BYTES, "password": "hunter2"}).masked()
    assert isinstance(stored.body, str) and stored.body.startswith('{"error": "xxx')
    small = Failure(body={"error": "x", "password": "hunter2"}).masked()
    assert small.body == {"error": "x", "password": "[masked]"}


def test_what_cannot_be_stored_is_replaced() -> None:
    stored = Failure(message=b"nul \x00 and \xff", body={"n": float("nan"), "s": "\ud800"}).masked()  # type: ignore[arg-type]
    assert stored.message == "nul \ufffd and \ufffd"
    assert stored.body == {"n": "nan", "s": "?"}


def test_last_error_reads_as_a_sentence() -> None:
    failure = Failure(
        exception="openai.APIConnectionError", message="Connection error.", cause_chain=("httpx2.ReadError: ",)
    )
    assert failure.last_error == "openai.APIConnectionError: Connection error.\ncaused by httpx2.ReadError"
    page = Failure(
        exception="x.Y",
        message="<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>",
        http_status=502,
    )
    assert page.last_error == "x.Y: 502 Bad Gateway nginx"
    assert Failure(exception="x.Y", message="no", http_status=503).last_error == "x.Y: no (HTTP 503)"
    assert Failure().last_error == "failed without a message"


def test_last_error_names_our_own_faults_without_their_module() -> None:
    """The stored name keeps it: rules and fingerprints read that one."""
    failure = Failure.from_exception(raised(AnswerTruncated(), cause=StreamCut()))
    assert failure.exception == "tasks.errors.faults.AnswerTruncated"
    assert failure.last_error == (
        "AnswerTruncated: the answer was cut at the output token limit (finish reason length)\n"
        "caused by StreamCut: the stream ended without a finish reason"
    )


def test_json_round_trip() -> None:
    failure = Failure.from_exception(raised(status_error(400, {"error": {"message": "no"}})), provider="acme").masked()
    again = Failure.from_json(json.loads(json.dumps({**failure.to_json(), "later": 1})))
    assert again == failure
