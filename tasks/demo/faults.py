"""The faults on demand, by name: each is what a provider, or something on the way to it, really does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from tasks.demo.answers import answer, off_topic
from tasks.demo.chat import Address, Call, NotAsked
from tasks.demo.draw import seeded
from tasks.demo.replies import Completion, Reply, Reset, Response, Silence, error_body, json_response
from tasks.demo.scenario import staged_fault
from tasks.demo.schema import Unsatisfiable, spoil

HTML = """<html>
<head><title>502 Bad Gateway</title></head>
<body><center><h1>502 Bad Gateway</h1></center><hr><center>gateway</center></body>
</html>
"""
SIGN_IN = "<!DOCTYPE html><html><head><title>Sign in</title></head><body><form>Sign in to go on</form></body></html>"
RATE_LIMIT = "Rate limit reached for requests per min (RPM): Limit 60, Used 60, Requested 1."
OVERLOADED = "The server is currently overloaded with other requests. Sorry about that!"


@dataclass(frozen=True)
class Fault:
    """``reply`` makes the answer to a call; ``times`` is how often a task meets it before all is well, None: always."""

    reply: Callable[[Call, str | None], Reply]
    times: int | None = None


def reply_to(call: Call, address: Address) -> Reply:
    """What to answer at this address. Raises NotAsked for a fault that is not known or a schema that nothing fits."""
    try:
        fault = FAULTS[address.fault]
    except KeyError:
        raise NotAsked(f"No such fault: {address.fault!r}. Known: {', '.join(FAULTS)}.", status=404) from None
    times = fault.times if address.times is None else address.times
    try:
        if times is not None and call.number > times:
            return _ok(call)
        return fault.reply(call, address.retry_after)
    except Unsatisfiable as error:
        raise NotAsked(f"Invalid schema for response_format: {error}", param="response_format") from error


def _ok(call: Call, _retry_after: str | None = None) -> Completion:
    return Completion(answer(call))


def _demo(call: Call, _retry_after: str | None) -> Reply:
    staged = staged_fault(call)
    return _ok(call) if staged is None else FAULTS[staged.fault].reply(call, staged.retry_after)


def _refusal(
    status: int, message: str, kind: str | None, code: str | int | None, param: str | None = None
) -> Callable[[Call, str | None], Reply]:
    return lambda _call, _retry_after: json_response(status, error_body(message, kind, code, param))


def _server_error(call: Call, _retry_after: str | None) -> Reply:
    message = f"The server had an error while processing your request. Request id: req_{call.seed[:24]}."
    return json_response(500, error_body(message, "server_error", None))


def _unavailable(retry_after: str | None) -> Reply:
    headers = {} if retry_after is None else {"retry_after": retry_after}
    return json_response(503, error_body(OVERLOADED, "service_unavailable", None), **headers)


def _overloaded(_call: Call, retry_after: str | None) -> Reply:
    value = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    return json_response(529, value, retry_after=retry_after or "3")


def _rate_limit(**headers: str) -> Reply:
    return json_response(429, error_body(RATE_LIMIT, "requests", "rate_limit_exceeded"), **headers)


def _rate_limit_date(_call: Call, retry_after: str | None) -> Reply:
    # A date has whole seconds: round up, so that it is never sooner than was meant.
    moment = datetime.now(UTC) + timedelta(seconds=float(retry_after or 2) + 1)
    return _rate_limit(retry_after=format_datetime(moment.replace(microsecond=0), usegmt=True))


def _auth_failed(call: Call, _retry_after: str | None) -> Reply:
    # Providers do repeat the key they were given: what is stored of this has to be masked.
    message = f"Incorrect API key provided: {call.api_key or '(none)'}. Check the key of this provider."
    return json_response(401, error_body(message, "invalid_request_error", "invalid_api_key"))


def _permission_denied(call: Call, _retry_after: str | None) -> Reply:
    message = f"You are not allowed to sample from the model `{call.model}`."
    return json_response(403, error_body(message, "permission_error", "permission_denied"))


def _model_not_found(call: Call, _retry_after: str | None) -> Reply:
    message = f"The model `{call.model}` does not exist or you do not have access to it."
    return json_response(404, error_body(message, "invalid_request_error", "model_not_found"))


def _half(text: str) -> str:
    return text[: max(1, len(text) // 2)]


def _fenced(call: Call, _retry_after: str | None) -> Completion:
    return Completion(f"Here is the answer you asked for:\n\n```json\n{answer(call)}\n```\nLet me know if it helps.")


def _wrong_schema(call: Call, _retry_after: str | None = None) -> Completion:
    if call.schema is None:
        return _ok(call)
    spoilt = spoil(json.loads(answer(call)), call.schema, seeded(call.seed))
    return Completion(json.dumps(spoilt, ensure_ascii=False))


def _repaired(call: Call, _retry_after: str | None) -> Completion:
    return _ok(call) if call.asked_again else _wrong_schema(call)


def _error_within(message: str, kind: str, code: str | int) -> Callable[[Call, str | None], Reply]:
    return lambda call, _retry_after: Completion(answer(call), error=error_body(message, kind, code)["error"])


FAULTS: dict[str, Fault] = {
    "ok": Fault(_ok),
    "demo": Fault(_demo),
    # The server or the way to it
    "error_500": Fault(_server_error),
    "error_503": Fault(lambda _call, after: _unavailable(after)),
    "error_503_retry_after": Fault(lambda _call, after: _unavailable(after or "3")),
    "error_529_retry_after": Fault(_overloaded),
    "html_502": Fault(lambda _call, _after: Response(502, HTML.encode(), "text/html")),
    "reset": Fault(lambda _call, _after: Reset()),
    "stream_cut": Fault(lambda call, _after: Completion(answer(call), cut=True)),
    "no_finish_reason": Fault(lambda call, _after: Completion(answer(call), finish=None)),
    "no_answer": Fault(lambda _call, _after: Silence()),
    # Limits
    "rate_limit_retry_after": Fault(lambda _call, after: _rate_limit(retry_after=after or "2"), times=2),
    "rate_limit_date": Fault(_rate_limit_date, times=2),
    "rate_limit_ms": Fault(lambda _call, after: _rate_limit(retry_after_ms=after or "1500"), times=2),
    "rate_limit_plain": Fault(lambda _call, _after: _rate_limit(), times=2),
    # The key and the account
    "auth_failed": Fault(_auth_failed),
    "quota_exhausted": Fault(
        _refusal(
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        )
    ),
    "quota_402": Fault(_refusal(402, "Insufficient credits. Add more credits to go on.", None, 402)),
    "permission_denied": Fault(_permission_denied),
    "model_not_found": Fault(_model_not_found),
    # The request
    "context_too_long": Fault(
        _refusal(
            400,
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 15733 tokens. "
            "Please reduce the length of the messages.",
            "invalid_request_error",
            "context_length_exceeded",
            "messages",
        )
    ),
    "request_too_large": Fault(
        _refusal(413, "Request exceeds the maximum allowed number of bytes.", "request_too_large", None)
    ),
    "request_too_large_429": Fault(
        _refusal(
            429,
            "Request too large for simulated-small on tokens per min (TPM): Limit 30000, Requested 48210. "
            "The input or output tokens must be reduced in order to run successfully.",
            "tokens",
            "rate_limit_exceeded",
        )
    ),
    "content_filter_400": Fault(
        _refusal(
            400,
            "The response was filtered due to the prompt triggering the content management policy. "
            "Please modify your prompt and retry.",
            None,
            "content_filter",
            "prompt",
        )
    ),
    # The answer
    "content_filter_finish": Fault(lambda call, _after: Completion(_half(answer(call)), finish="content_filter")),
    "not_json": Fault(lambda call, _after: Completion(off_topic(call))),
    "wrong_schema": Fault(_wrong_schema),
    "fenced_json": Fault(_fenced),
    "repaired": Fault(_repaired),
    "length": Fault(lambda call, _after: Completion(_half(answer(call)), finish="length")),
    "empty": Fault(lambda _call, _after: Completion("")),
    "empty_200": Fault(lambda _call, _after: Response(200, b"")),
    "html_200": Fault(lambda _call, _after: Response(200, SIGN_IN.encode(), "text/html; charset=utf-8")),
    "object_200": Fault(lambda _call, _after: Response(200, b"{}")),
    "error_in_200": Fault(_error_within("Upstream provider is overloaded, try again.", "server_error", 503)),
    "error_in_200_context": Fault(
        _error_within(
            "This model's maximum context length is 8192 tokens.", "invalid_request_error", "context_length_exceeded"
        )
    ),
}
