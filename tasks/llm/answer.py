"""The answer as it grows, from streamed chunks or one document, and what makes it unusable. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from tasks.errors import AnswerEmpty, AnswerFiltered, AnswerMalformed, AnswerTruncated, ProviderError, StreamCut
from tasks.llm.cost import MOST_TOKENS
from tasks.llm.text import shortened, whole

#: Characters that are kept of one answer, in whatever field they come: as much as a result may hold.
MAX_TEXT = 4 * 1024 * 1024
MAX_TOOLS = 256

TRUNCATED = {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
FILTERED = {"content_filter", "content_filtered", "safety", "sensitive", "recitation", "prohibited_content", "refusal"}
#: The provider itself broke off (DeepSeek, Zhipu, OpenRouter, vLLM).
BROKEN_OFF = {"insufficient_system_resource", "network_error", "error", "abort"}

#: Keys by which a body without choices is an error (OpenAI-likes put it in ``error``; others are less regular).
ERROR_KEYS = ("error", "errors", "error_code", "error_msg", "message", "msg", "detail", "code")
#: Where providers put the id by which their support finds a call, the first found wins; else the answer's own id.
REQUEST_ID_HEADERS = (
    "x-request-id",
    "request-id",
    "apim-request-id",
    "x-amzn-requestid",
    "x-ds-trace-id",
    "x-siliconcloud-trace-id",
    "x-trace-id",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete, usable answer. Token counts are the provider's own, None where it sent none."""

    text: str
    finish_reason: str
    tool_calls: list[dict[str, Any]]
    input_tokens: int | None
    output_tokens: int | None
    provider_request_id: str | None
    chunks: int
    refusal: str | None
    model: str | None
    http_status: int
    duration_ms: int


@dataclass(slots=True)
class Draft:
    """What has come so far. Of a call that breaks off it still tells what it got."""

    # Not lists of what came: each piece of one character would take fifty bytes.
    parts: StringIO = field(default_factory=StringIO)
    refusals: StringIO = field(default_factory=StringIO)
    tools: dict[int, dict[str, Any]] = field(default_factory=dict)
    arguments: dict[int, StringIO] = field(default_factory=dict)
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None
    #: Pieces of answer, reasoning or tool call that came; about one token each when streamed.
    chunks: int = 0
    http_status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    answer_id: str | None = None
    size: int = 0

    @property
    def text(self) -> str:
        """All text so far, without halves of surrogate pairs."""
        return whole(self.parts.getvalue())

    @property
    def refusal(self) -> str | None:
        """What the model said instead of answering, where the provider tells refusals apart."""
        return whole(self.refusals.getvalue()) or None

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """Tool calls in their order, the arguments as the text that the model wrote."""
        order = sorted(self.tools)
        return [{**self.tools[index], "arguments": self.arguments[index].getvalue()} for index in order]

    @property
    def request_id(self) -> str | None:
        """The provider's id of this call."""
        return next((self.headers[name] for name in REQUEST_ID_HEADERS if self.headers.get(name)), self.answer_id)

    def respond(self, status: int, headers: Mapping[str, str]) -> None:
        """Note the status line and headers of the response."""
        self.http_status, self.headers = status, headers

    def add(self, body: Any, *, event: str = "") -> None:
        """Fold in one chunk of a stream or one whole document; ``event`` is the name of the server-sent event.

        Raises ProviderError where it is an error, AnswerMalformed where it is nothing the protocol knows.
        """
        if not isinstance(body, dict):
            raise self._malformed(f"the provider sent {type(body).__name__} where the protocol has an object")
        choices = body.get("choices")
        if body.get("error") or event == "error" or not isinstance(choices, list) or "base_resp" in body:
            self._refuse_error(body, choices, event)
        for choice in choices if isinstance(choices, list) else ():
            self._add_choice(choice, body)
        if isinstance(usage := body.get("usage"), dict):
            self.input_tokens = _count(usage.get("prompt_tokens"), self.input_tokens)
            self.output_tokens = _count(usage.get("completion_tokens"), self.output_tokens)
        if isinstance(model := body.get("model"), str) and model:
            self.model = model
        if self.answer_id is None and isinstance(answer_id := body.get("id"), str) and answer_id:
            self.answer_id = answer_id

    def finish(self, duration_ms: int) -> Answer:
        """The answer, if it may be used.

        Raises StreamCut without a finish reason, AnswerTruncated, AnswerFiltered (a refusal too) or AnswerEmpty.
        """
        reason, text = self.finish_reason, self.text
        if reason is None:
            raise StreamCut()
        self._refuse_reason(reason)
        if not text.strip():
            if self.refusal:
                raise AnswerFiltered(f"the model refused to answer: {shortened(self.refusal)}")
            raise AnswerEmpty()
        return Answer(
            text=text,
            finish_reason=reason,
            tool_calls=self.tool_calls,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            provider_request_id=self.request_id,
            chunks=self.chunks,
            refusal=self.refusal,
            model=self.model,
            http_status=self.http_status or 200,
            duration_ms=duration_ms,
        )

    def _refuse_reason(self, reason: str) -> None:
        word = reason.lower()
        if word in TRUNCATED:
            raise AnswerTruncated("" if word == "length" else f"the answer was cut at a token limit ({reason})")
        if word in FILTERED:
            raise AnswerFiltered(
                "" if word == "content_filter" else f"the answer was withheld (finish reason {reason})"
            )
        if word in BROKEN_OFF:
            raise StreamCut(f"the provider broke the answer off (finish reason {reason})")

    def _refuse_error(self, body: dict[str, Any], choices: Any, event: str) -> None:
        """Raise for a body that is an error; return for one that merely carries nothing, such as a ping."""
        state = body.get("base_resp")  # MiniMax: every body has one, with status_code 0 when all is well.
        if isinstance(state, dict) and state.get("status_code"):
            raise self._error(body, str(state.get("status_msg") or ""))
        named = event == "error" or bool(body.get("error"))
        if named or (not isinstance(choices, list) and any(body.get(key) for key in ERROR_KEYS)):
            raise self._error(body, _sentence(body))

    def _error(self, body: dict[str, Any], message: str) -> ProviderError:
        return ProviderError(status=self.http_status, headers=self.headers, body=body, message=message)

    def _malformed(self, problem: str) -> AnswerMalformed:
        return AnswerMalformed("the response cannot be read", problems=[problem])

    def _add_choice(self, choice: Any, body: dict[str, Any]) -> None:
        if not isinstance(choice, dict):
            raise self._malformed("a choice is no object")
        if choice.get("index") not in (0, None):
            return
        if isinstance(choice.get("error"), dict):
            raise self._error({**body, "error": choice["error"]}, _sentence(choice))
        piece = choice.get("delta")
        if piece is None:
            piece = choice.get("message")
        if isinstance(piece, dict):
            self._add_piece(piece)
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self.finish_reason = reason

    def _add_piece(self, piece: dict[str, Any]) -> None:
        text = _text(piece.get("content"))
        if text:
            self.parts.write(self._weighed(text))
        if isinstance(refusal := piece.get("refusal"), str):
            self.refusals.write(self._weighed(refusal))
        if isinstance(calls := piece.get("tool_calls"), list):
            self._add_tools(calls)
        if text or any(value for key, value in piece.items() if key not in {"role", "content"}):
            self.chunks += 1

    def _weighed(self, text: str) -> str:
        """``text``, counted: all that a call keeps is bounded, whatever field it came in."""
        self.size += len(text)
        if self.size > MAX_TEXT:
            raise self._malformed(f"the answer is longer than {MAX_TEXT} characters")
        return text

    def _add_tools(self, calls: list[Any]) -> None:
        for position, call in enumerate(calls):
            if not isinstance(call, dict):
                continue
            index = call.get("index")
            index = index if isinstance(index, int) else position
            known = self.tools.setdefault(index, {"id": None, "name": ""})
            arguments = self.arguments.setdefault(index, StringIO())
            if len(self.tools) > MAX_TOOLS:
                raise self._malformed(f"the answer calls more than {MAX_TOOLS} tools")
            known["id"] = known["id"] or self._weighed(str(call.get("id") or "")) or None
            function = call.get("function")
            function = function if isinstance(function, dict) else {}
            if isinstance(name := function.get("name"), str):
                known["name"] += self._weighed(name)
            if isinstance(more := function.get("arguments"), str):
                arguments.write(self._weighed(more))


def _text(content: Any) -> str:
    """The text of a content field: a string, or a list of parts of which those of type text count (Mistral)."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return ""


def _count(value: Any, before: int | None) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if is_count else before


def _sentence(body: dict[str, Any]) -> str:
    """What an error body says, wherever it says it."""
    error = body.get("error")
    inner = error.get("message") if isinstance(error, dict) else error
    for found in (inner, body.get("message"), body.get("error_msg"), body.get("msg"), body.get("detail")):
        if isinstance(found, str) and found:
            return whole(found)
    return ""
