"""Every way in which a call fails: the error it ends in, what the trail keeps, and the code that follows from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import openai
import pytest

from tasks.errors import (
    AnswerEmpty,
    AnswerFiltered,
    AnswerMalformed,
    AnswerTruncated,
    ProviderError,
    StreamCut,
    classify,
)
from tasks.errors.capture import capture
from tests.chat import EVENT_STREAM, chat, chunk, completion, document, error, event, no_response, stream
from tests.provider import Reply, ScriptedProvider
from tests.tasks.llm.conftest import GOOD, SCHEMA, Attempt

Run = Callable[..., Attempt]
CUT = [chunk("half an "), chunk("ans")]

STATUSES = [
    (error(500, "The server had an error"), openai.InternalServerError, "AI_UPSTREAM_5XX"),
    (error(503, "overloaded", retry_after="2"), openai.InternalServerError, "AI_OVERLOADED"),
    (error(529, "Overloaded"), openai.InternalServerError, "AI_OVERLOADED"),
    (
        document("<html><title>502 Bad Gateway</title></html>", status=502),
        openai.InternalServerError,
        "AI_UPSTREAM_5XX",
    ),
    (error(429, "Rate limit reached", retry_after="2"), openai.RateLimitError, "AI_RATE_LIMITED"),
    (
        error(429, "You exceeded your current quota", code="insufficient_quota"),
        openai.RateLimitError,
        "AI_QUOTA_EXHAUSTED",
    ),
    (error(401, "Incorrect API key provided", code="invalid_api_key"), openai.AuthenticationError, "AI_AUTH_FAILED"),
    (error(403, "Permission denied", code="permission_denied"), openai.PermissionDeniedError, "AI_PERMISSION_DENIED"),
    (error(404, "The model `x` does not exist", code="model_not_found"), openai.NotFoundError, "AI_MODEL_NOT_FOUND"),
    (
        error(400, "maximum context length is 8192 tokens", code="context_length_exceeded"),
        openai.BadRequestError,
        "AI_CONTEXT_TRUNCATED",
    ),
    (error(413, "Request too large"), openai.APIStatusError, "AI_INPUT_TOO_LARGE"),
    (error(400, "filtered", code="content_filter"), openai.BadRequestError, "AI_CONTENT_FILTERED"),
]


@pytest.mark.parametrize(("reply", "kind", "code"), STATUSES)
@pytest.mark.parametrize("streamed", [True, False])
def test_statuses(
    provider: ScriptedProvider, attempt: Run, reply: Reply, kind: type[Exception], code: str, streamed: bool
) -> None:
    provider.replies(reply)

    done = attempt(stream=streamed)

    assert type(done.error) is kind
    assert classify(capture(done.error)).code == code
    (call,) = done.calls
    assert (call.http_status, call.error, call.answer) == (reply.status, kind.__name__, "")
    assert len(provider.requests) == 1


def test_the_hints_of_a_refusal_stay_readable(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(error(429, "slow down", retry_after="2", x_request_id="req_9"))

    done = attempt()
    failure = capture(done.error)

    assert failure.headers["retry-after"] == "2"
    assert failure.http_status == 429
    assert done.calls[0].provider_request_id == "req_9"


@pytest.mark.parametrize("streamed", [True, False])
def test_refused_connection(provider: ScriptedProvider, attempt: Run, streamed: bool) -> None:
    provider.stop()

    done = attempt(stream=streamed)

    assert isinstance(done.error, openai.APIConnectionError)
    assert classify(capture(done.error)).code == "AI_CONNECTION_FAILED"
    assert (done.calls[0].http_status, done.calls[0].error) == (None, "APIConnectionError")


@pytest.mark.parametrize("end", ["reset", "cut"])
@pytest.mark.parametrize("streamed", [True, False])
def test_no_response(provider: ScriptedProvider, attempt: Run, end: Any, streamed: bool) -> None:
    provider.replies(no_response(end))

    done = attempt(stream=streamed)

    assert isinstance(done.error, openai.APIConnectionError)
    assert classify(capture(done.error)).code == "AI_CONNECTION_FAILED"
    assert done.calls[0].http_status is None


@pytest.mark.parametrize("end", ["reset", "cut"])
def test_a_stream_cut_inside(provider: ScriptedProvider, attempt: Run, end: Any) -> None:
    provider.replies(stream(CUT, done=False, end=end))

    done = attempt()

    assert isinstance(done.error, httpx2.TransportError)
    assert classify(capture(done.error)).code == "AI_CONNECTION_FAILED"
    (call,) = done.calls
    assert (call.answer, call.http_status, call.finish_reason) == ("half an ans", 200, None)


def test_a_body_shorter_than_its_length(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(document(completion("x" * 100), length=5_000, end="cut"))

    done = attempt(stream=False)

    assert isinstance(done.error, httpx2.TransportError)
    assert classify(capture(done.error)).code == "AI_CONNECTION_FAILED"


@pytest.mark.parametrize(
    "reply",
    [
        stream(CUT, done=True),
        stream(CUT, done=False),
        stream(CUT, done=False, framing="eof"),
        stream([*CUT, chunk(finish="")]),
        stream([], done=True),
        Reply([b": keep-alive\n\n"], headers=EVENT_STREAM),
        Reply([event(chunk("half", "stop"))[:-20]], headers=EVENT_STREAM, framing="eof"),
        document(completion("an end without a reason", None)),
        stream([chunk("half"), chunk(finish="insufficient_system_resource")]),
    ],
    ids=[
        "done",
        "no-done",
        "eof",
        "empty-reason",
        "only-done",
        "only-comments",
        "half-event",
        "document",
        "broken-off",
    ],
)
def test_no_finish_reason(provider: ScriptedProvider, attempt: Run, reply: Reply) -> None:
    provider.replies(reply)

    done = attempt()

    assert type(done.error) is StreamCut
    assert classify(capture(done.error)).code == "AI_CONNECTION_FAILED"
    assert done.calls[0].error == "StreamCut"


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS"])
@pytest.mark.parametrize("text", [GOOD, ""])
@pytest.mark.parametrize("streamed", [True, False])
def test_cut_at_the_limit(provider: ScriptedProvider, attempt: Run, reason: str, text: str, streamed: bool) -> None:
    provider.script(lambda request, n: chat(request, text, finish=reason))

    done = attempt(output_schema=SCHEMA, stream=streamed)

    assert type(done.error) is AnswerTruncated
    assert classify(capture(done.error)).code == "AI_OUTPUT_TRUNCATED"
    assert (done.calls[0].answer, done.calls[0].finish_reason, done.calls[0].output_tokens) == (text, reason, 5)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("reason", ["content_filter", "SAFETY", "sensitive"])
def test_filtered(provider: ScriptedProvider, attempt: Run, reason: str) -> None:
    provider.script(lambda request, n: chat(request, "well,", finish=reason))

    done = attempt()

    assert type(done.error) is AnswerFiltered
    assert classify(capture(done.error)).code == "AI_CONTENT_FILTERED"


def test_a_refusal(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(stream([chunk(refusal="I cannot "), chunk(refusal="help."), chunk(finish="stop")]))

    done = attempt()

    assert type(done.error) is AnswerFiltered
    assert "I cannot help." in str(done.error)


@pytest.mark.parametrize("text", ["", " \n\t"])
@pytest.mark.parametrize("streamed", [True, False])
def test_empty(provider: ScriptedProvider, attempt: Run, text: str, streamed: bool) -> None:
    provider.script(lambda request, n: chat(request, text))

    done = attempt(stream=streamed, output_schema=SCHEMA)

    assert type(done.error) is AnswerEmpty
    assert classify(capture(done.error)).code == "AI_OUTPUT_EMPTY"
    assert len(provider.requests) == 1


def test_null_content(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(document(completion(None)))

    assert type(attempt(stream=False).error) is AnswerEmpty


HTML = "<!DOCTYPE html><html><body>Sign in</body></html>"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (document(b""), "the body is empty"),
        (document("  \n"), "the body is empty"),
        (
            document(HTML, headers={"content-type": "text/html"}),
            "the body is no JSON (content type text/html): <!DOCTYPE",
        ),
        (document(HTML, headers=EVENT_STREAM), "the body is no JSON"),
        (document("upstream connect error", headers={"content-type": "text/plain"}), "upstream connect error"),
        (document('{"id": "x", "choi'), "the body is no JSON"),
        (document("[" * 200_000), "the body is no JSON"),
        (document("[]"), "list"),
        (document('"hello"'), "str"),
        (document("null"), "NoneType"),
        (document({"id": "x", "object": "chat.completion"}), "no choices"),
        (document({"choices": [7]}), "a choice is no object"),
        (stream(["upstream unavailable"]), "an event of the stream is no JSON: upstream unavailable"),
        (stream([[1, 2]]), "list"),
        (Reply([b"data: \xff\xfe\n\n"], headers=EVENT_STREAM), "no JSON"),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_a_200_without_a_usable_body(
    provider: ScriptedProvider, attempt: Run, reply: Reply, said: str, streamed: bool
) -> None:
    provider.replies(reply)

    done = attempt(stream=streamed, output_schema=SCHEMA)

    assert type(done.error) is AnswerMalformed
    assert said in str(done.error)
    # Nothing to send back to the model: this is for a retry, not for a repair.
    assert done.error.repairs == 0
    assert len(provider.requests) == 1
    assert classify(capture(done.error)).code == "AI_OUTPUT_MALFORMED"
    assert done.calls[0].http_status == 200


QUOTA = {
    "error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}
}
RATE = {"error": {"message": "Rate limit reached for requests", "code": "rate_limit_exceeded"}}
UPSTREAM = {"error": {"message": "Provider returned error", "code": 502}}


@pytest.mark.parametrize(
    ("pieces", "code", "text"),
    [
        ([QUOTA], "AI_QUOTA_EXHAUSTED", ""),
        ([RATE], "AI_RATE_LIMITED", ""),
        ([*CUT, RATE], "AI_RATE_LIMITED", "half an ans"),
        ([*CUT, {**chunk(finish="error"), **UPSTREAM}], "AI_UPSTREAM_5XX", "half an ans"),
    ],
)
def test_an_error_inside_a_stream(
    provider: ScriptedProvider, attempt: Run, pieces: Sequence[Any], code: str, text: str
) -> None:
    provider.replies(stream(pieces))

    done = attempt()

    assert type(done.error) is ProviderError
    assert (done.error.status, done.error.body["error"]) == (200, pieces[-1]["error"])
    assert classify(capture(done.error)).code == code
    assert done.calls[0].answer == text
    assert done.calls[0].error == "ProviderError"


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(("body", "code"), [(QUOTA, "AI_QUOTA_EXHAUSTED"), (RATE, "AI_RATE_LIMITED")])
def test_an_error_inside_a_200(provider: ScriptedProvider, attempt: Run, body: Any, code: str, streamed: bool) -> None:
    provider.replies(document(body, headers={"retry-after": "3"}))

    done = attempt(stream=streamed)

    assert type(done.error) is ProviderError
    assert str(done.error) == body["error"]["message"]
    assert done.error.headers["retry-after"] == "3"
    assert classify(capture(done.error)).code == code


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": "model overloaded"}, "model overloaded"),
        ({"object": "error", "message": "out of memory", "code": 50_002}, "out of memory"),
        ({"code": "Throttling.RateQuota", "message": "Requests throttled", "request_id": "r"}, "Requests throttled"),
        ({"error_code": 336_501, "error_msg": "Rate limit exceeded"}, "Rate limit exceeded"),
        ({"detail": "Not authenticated"}, "Not authenticated"),
        (
            {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}, "choices": None},
            "insufficient balance",
        ),
        ({**completion("x"), "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}, "rate limit"),
        ({"choices": [{"index": 0, "error": {"message": "Upstream failed", "code": 502}}]}, "Upstream failed"),
        ({"error": {"message": "half \ud83d", "code": "x"}}, "half \ufffd"),
    ],
)
def test_errors_in_other_forms(provider: ScriptedProvider, attempt: Run, body: Any, said: str) -> None:
    provider.replies(document(body))

    done = attempt()

    assert type(done.error) is ProviderError
    assert str(done.error) == said


def test_a_named_error_event(provider: ScriptedProvider, attempt: Run) -> None:
    body = {"type": "overloaded_error", "reason": "Overloaded"}
    provider.replies(Reply([event(chunk("half")), b"event: error\n", event(body)], headers=EVENT_STREAM))

    done = attempt()

    assert type(done.error) is ProviderError
    assert done.error.body == body


def test_base_resp_of_zero_is_no_error(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(document({**completion("fine"), "base_resp": {"status_code": 0, "status_msg": "success"}}))

    assert attempt(stream=False).value == "fine"


def test_a_runaway_answer_is_stopped(provider: ScriptedProvider, attempt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.llm.answer.MAX_TEXT", 10_000)
    provider.replies(stream([chunk("x" * 1_000)] * 50, end="hang"))

    done = attempt()

    assert type(done.error) is AnswerMalformed
    assert "longer than 10000 characters" in str(done.error)
    provider.requests[0].wait_closed()


def test_a_line_that_never_ends_is_stopped(
    provider: ScriptedProvider, attempt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.llm.stream.MAX_HELD", 100_000)
    provider.replies(Reply([b"data: " + b"x" * 10_000] * 50, headers=EVENT_STREAM, end="hang"))

    done = attempt()

    assert type(done.error) is AnswerMalformed
    assert "larger than 100000 bytes" in str(done.error)


def test_the_code_does_not_change_with_the_stream(provider: ScriptedProvider, attempt: Run) -> None:
    """An answer that quotes an error is an answer."""
    text = json.dumps({"error": {"message": "quota"}})
    provider.script(lambda request, n: chat(request, text))

    assert attempt().value == text
