"""One HTTP call: ask, read raw lines, notice every way in which an answer can be broken."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

import httpx2
from openai import AsyncOpenAI

from tasks.errors import AnswerMalformed, StreamCut
from tasks.llm.answer import Answer, Draft
from tasks.llm.events import Event, EventReader, NotJson
from tasks.llm.request import Message, PromptSpec, ProviderConfig
from tasks.llm.text import shortened

#: Seconds that the end of a stream (usage, [DONE]) may take once the finish reason was read: the answer is whole.
TAIL_SECONDS = 3.0
#: Seconds to wait for the end of the body after [DONE], so that the connection can be used again.
CLOSE_SECONDS = 0.1
#: Bytes that may wait for a line end or make up a document; above any answer that can be stored.
MAX_HELD = 16 * 1024 * 1024

#: Pieces after which the other calls of the process have their turn.
TURN_PIECES = 64

OnPieces = Callable[[int], None]


def request_body(provider: ProviderConfig, spec: PromptSpec, messages: list[Message]) -> dict[str, Any]:
    """The body of the call; settings that are None are left out."""
    body: dict[str, Any] = {"model": spec.model, "messages": messages, "stream": spec.stream}
    if spec.stream:
        body["stream_options"] = {"include_usage": True}
    if spec.temperature is not None:
        body["temperature"] = spec.temperature
    if spec.max_output_tokens is not None:
        body[_limit_name(provider)] = spec.max_output_tokens
    return body


def _limit_name(provider: ProviderConfig) -> str:
    """OpenAI's reasoning models refuse ``max_tokens``; many compatible servers know no other name."""
    host = urlsplit(provider.base_url).hostname or ""
    ours = host == "api.openai.com" or host.endswith((".api.openai.com", ".openai.azure.com"))
    return "max_completion_tokens" if ours else "max_tokens"


async def ask(
    client: AsyncOpenAI,
    body: dict[str, Any],
    draft: Draft,
    on_pieces: OnPieces | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Make the call and return its answer; ``draft`` holds what came, also when this raises or is cancelled.

    ``on_pieces`` is called whenever more came, with the number of pieces so far. Raises the faults of ``tasks.errors``
    for a bad answer, and whatever the SDK or its transport raises for a call that failed. Cancelling closes the
    connection at once, so that the provider stops working.
    """
    started = time.monotonic()
    async with client.chat.completions.with_streaming_response.create(**body, extra_headers=headers) as response:
        draft.respond(response.status_code, response.headers)
        await _read(response.http_response, draft, on_pieces)
    return draft.finish(round((time.monotonic() - started) * 1000))


async def _read(response: httpx2.Response, draft: Draft, on_pieces: OnPieces | None) -> None:
    """Read the body to its end. A cut after the finish reason is no loss: the answer is whole, only usage may lack."""
    reader = EventReader()
    document = bytearray()
    try:
        async with asyncio.timeout(None) as tail, aclosing(response.aiter_bytes()) as pieces:
            count = 0
            async for data in pieces:
                _take(reader, data, document, draft, on_pieces)
                _limit(tail, reader, draft)
                count += 1
                if count % TURN_PIECES == 0:
                    # A read of 64 KiB may bring thousands of pieces, and none of them waits for anything.
                    await asyncio.sleep(0)
    except (httpx2.TransportError, TimeoutError):
        if draft.finish_reason is None:
            raise
    _fold(reader.close(), draft)
    if not reader.count and not reader.done:
        _read_document(bytes(document), response, draft)


def _take(reader: EventReader, data: bytes, document: bytearray, draft: Draft, on_pieces: OnPieces | None) -> None:
    before = draft.chunks
    _fold(reader.feed(data), draft)
    if reader.count:
        document.clear()
    else:
        document += data
    if max(reader.held, len(document)) > MAX_HELD:
        raise AnswerMalformed("the response cannot be read", problems=[f"one part is larger than {MAX_HELD} bytes"])
    if on_pieces and draft.chunks > before:
        on_pieces(draft.chunks)


def _fold(events: Iterable[Event], draft: Draft) -> None:
    try:
        for name, data in events:
            draft.add(data, event=name)
    except NotJson as error:
        # Without its cause, whose text is the whole event.
        problem = f"an event of the stream is no JSON: {shortened(str(error))}"
        raise AnswerMalformed("the response cannot be read", problems=[problem]) from None


def _limit(tail: asyncio.Timeout, reader: EventReader, draft: Draft) -> None:
    """Once the answer is whole, wait for the rest only so long."""
    if reader.done:
        tail.reschedule(asyncio.get_running_loop().time() + CLOSE_SECONDS)
    elif draft.finish_reason is not None and tail.when() is None:
        tail.reschedule(asyncio.get_running_loop().time() + TAIL_SECONDS)


def _read_document(body: bytes, response: httpx2.Response, draft: Draft) -> None:
    """A body without events: one completion, an error, or nothing that the protocol knows."""
    kind = response.headers.get("content-type", "")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        if "event-stream" in kind and not body.lstrip().startswith((b"{", b"[", b"<")):
            raise StreamCut() from None
        raise AnswerMalformed("the response cannot be read", problems=[_what_came(body, kind)]) from None
    draft.add(value)
    if not isinstance(value.get("choices"), list):
        raise AnswerMalformed("the response cannot be read", problems=["the answer has no choices"])


def _what_came(body: bytes, kind: str) -> str:
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return f"the body is empty (content type {kind or 'none'})"
    return f"the body is no JSON (content type {kind or 'none'}): {shortened(text)}"
