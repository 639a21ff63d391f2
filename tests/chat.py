"""The OpenAI chat protocol as replies of ``tests.provider.ScriptedProvider``: answers, streams, errors, faults."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.provider import Ending, Reply

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}


def chunk(content: str | None = None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """One chunk of a streamed completion."""
    part = {**({} if content is None else {"content": content}), **delta}
    choice = {"index": 0, "delta": part, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "scripted-1", "choices": [choice]}


def usage_chunk(input_tokens: int, output_tokens: int) -> dict[str, Any]:
    """The chunk with the token counts, which has no choices."""
    return {**chunk(), "choices": [], "usage": _usage(input_tokens, output_tokens)}


def completion(content: str | None, finish: str | None = "stop", **extra: Any) -> dict[str, Any]:
    """A whole completion, as it is sent when not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "model": "scripted-1", "choices": [choice]}
    return {**body, "usage": _usage(12, 5), **extra}


def _usage(input_tokens: int, output_tokens: int) -> dict[str, int]:
    total = input_tokens + output_tokens
    return {"prompt_tokens": input_tokens, "completion_tokens": output_tokens, "total_tokens": total}


def event(data: Any) -> bytes:
    """One server-sent event; text goes out as it is, everything else as JSON."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"data: {text}\n\n".encode()


def stream(events: Iterable[Any], *, done: bool = True, **options: Any) -> Reply:
    """A stream of these events and ``[DONE]``; options are Reply's."""
    pieces = [event(data) for data in (*events, *(["[DONE]"] if done else []))]
    return Reply(pieces, **{"headers": EVENT_STREAM, **options})


def document(body: Any, **options: Any) -> Reply:
    """A body in one piece: bytes and text as they are, everything else as JSON."""
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Reply([data] if data else [], **{"framing": "length", **options})


def chat(request: Any, text: str, *, finish: str | None = "stop", pieces: int = 4, **options: Any) -> Reply:
    """The answer ``text`` in the way the request asks for it: streamed in so many pieces, or whole."""
    if not request.get("stream"):
        return document(completion(text, finish), **options)
    size = max(1, -(-len(text) // pieces))
    parts = [chunk(text[start : start + size]) for start in range(0, len(text), size)]
    usage = [usage_chunk(12, 5)] if (request.get("stream_options") or {}).get("include_usage") else []
    return stream([chunk("", role="assistant"), *parts, chunk(finish=finish), *usage], **options)


def error(status: int, message: str, *, code: str | None = None, kind: str = "error", **headers: str) -> Reply:
    """An error in OpenAI's form; headers with underscores for hyphens (``retry_after="2"``)."""
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return document(body, status=status, headers=named)


def no_response(end: Ending = "reset") -> Reply:
    """The connection ends, or hangs, before a status line."""
    return Reply(status=None, end=end)
