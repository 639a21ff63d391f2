"""The failures that we find ourselves: nobody raised, but the answer is of no use, late, or cannot be asked for.

The catalogue reads each by its class name, so renaming one changes its error code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class Fault(Exception):
    """A failure of one attempt that Redrive itself found. The text says what happened, for people."""

    text = "the attempt failed"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.text)


class AnswerTruncated(Fault):
    """The answer was cut at the output token limit: AI_OUTPUT_TRUNCATED, never a success."""

    text = "the answer was cut at the output token limit (finish reason length)"


class AnswerFiltered(Fault):
    """The provider's filter withheld the answer: AI_CONTENT_FILTERED."""

    text = "the provider's content filter withheld the answer (finish reason content_filter)"


class AnswerEmpty(Fault):
    """The model answered with nothing: AI_OUTPUT_EMPTY."""

    text = "the model answered with nothing"


class AnswerMalformed(Fault):
    """The answer is no JSON, or JSON against the schema: AI_OUTPUT_MALFORMED.

    ``problems`` holds one sentence for each fault found: field, what was expected, which values are allowed.
    ``repairs`` is how often the model was asked in vain to mend it; asking once more will not help then.
    """

    text = "the answer does not fit the schema"

    def __init__(self, message: str = "", *, problems: Iterable[str] = (), repairs: int = 0) -> None:
        self.problems = tuple(problems)
        self.repairs = repairs
        super().__init__(": ".join(part for part in (message or self.text, "; ".join(self.problems)) if part))


class InputInvalid(Fault):
    """The payload lacks what the prompt needs, so nothing was asked: AI_INPUT_INVALID."""

    text = "the payload does not fit the prompt"


class StreamCut(Fault):
    """The stream ended without a finish reason, so the answer may lack its end: AI_CONNECTION_FAILED, retried."""

    text = "the stream ended without a finish reason"


class AttemptTimeout(Fault):
    """No answer within the kind's ``timeout_seconds``; the call was aborted: AI_MODEL_TIMEOUT."""

    text = "the attempt reached its timeout"

    def __init__(self, message: str = "", *, seconds: float | None = None) -> None:
        self.seconds = seconds
        super().__init__(message or (f"no answer within {seconds:g} s; the call was aborted" if seconds else ""))


class Stalled(Fault):
    """No token, progress or step for the kind's ``stall_seconds``; the call was aborted: AI_MODEL_TIMEOUT."""

    text = "the attempt stalled"

    def __init__(self, message: str = "", *, seconds: float | None = None) -> None:
        self.seconds = seconds
        super().__init__(
            message or (f"no token or progress for {seconds:g} s; the call was aborted" if seconds else "")
        )


class ConfigurationFault(Fault):
    """Our own configuration is wrong, such as a provider's key that is not in the environment: AI_CONFIG_INVALID."""

    text = "the configuration is wrong"


class ProviderAtRest(Fault):
    """A handler asked for a provider that is on hold, cools or has no room; nothing was sent: AI_PROVIDER_HELD."""

    text = "the provider is on hold, cools or has no room"


class ProviderError(Fault):
    """The provider answered with an error in a way the SDK does not raise: inside a 200, or not as JSON.

    ``status`` is the HTTP status, ``headers`` the answer's headers, ``body`` the parsed JSON or the raw text. The
    error code follows from the content, as for any other answer; without a message the body's own is used.
    """

    text = "the provider answered with an error"

    def __init__(
        self,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        message: str = "",
    ) -> None:
        self.status = status
        self.headers = dict(headers or {})
        self.body = body
        super().__init__(message or _message_of(body))


def _message_of(body: Any) -> str:
    """The sentence an error body carries in ``error.message``, ``error``, ``message`` or ``detail``, else nothing."""
    if not isinstance(body, Mapping):
        return ""
    error = body.get("error")
    inner = error.get("message") if isinstance(error, Mapping) else error
    found = inner or body.get("message") or body.get("detail")
    return found if isinstance(found, str) else ""
