"""Puts a reply on the wire at the pace of a model: token by token or whole, and broken off where the fault says so."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.demo.chat import Call, count_tokens
from tasks.demo.http import Connection, chunk_bytes, head_bytes
from tasks.demo.replies import Completion, Reply, Reset, Response, Silence

FINGERPRINT = "fp_simulated"
#: Of the whole time of an answer: what passes before the first token, and before a refusal.
FIRST_TOKEN = 0.3
REFUSAL = 0.1


@dataclass(frozen=True)
class Ending:
    """How the provider's side of an exchange ended; ``event`` as the witness writes it: answered or cut.

    ``good``: a whole answer with a finish reason of ``stop`` went out, to its last byte.
    """

    event: str
    status: int | None = None
    good: bool = False


@dataclass(frozen=True)
class Exchange:
    """One call on its connection, with the time in seconds that its whole answer takes."""

    connection: Connection
    call: Call
    request_id: str
    seconds: float
    chunks: int

    async def send(self, reply: Reply) -> Ending:
        """Sends ``reply``. Raises ConnectionError when the client has gone."""
        match reply:
            case Silence():
                await asyncio.Event().wait()
                raise AssertionError("The silence ended.")
            case Reset():
                await asyncio.sleep(self.seconds * REFUSAL)
                self.connection.reset()
                return Ending("cut")
            case Response():
                await asyncio.sleep(self.seconds * REFUSAL)
                await self._whole(reply.status, reply.body, reply.content_type, reply.headers)
                return Ending("answered", reply.status)
            case Completion():
                reply = limited(reply, self.call.max_tokens)
                return await (self._stream(reply) if self.call.stream else self._at_once(reply))

    async def _whole(self, status: int, body: bytes, content_type: str, headers: Mapping[str, str]) -> None:
        await self.connection.write(
            self._head(status, content_type, {**headers, "content-length": str(len(body))}) + body
        )

    def _head(self, status: int, content_type: str, headers: Mapping[str, str]) -> bytes:
        named = {"content-type": content_type, "x-request-id": self.request_id, **SIMULATED, **headers}
        return head_bytes(status, named)

    async def _at_once(self, reply: Completion) -> Ending:
        await asyncio.sleep(self.seconds)
        value = {"error": dict(reply.error)} if reply.error else completion_object(self.call, self.request_id, reply)
        body = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        if reply.cut:
            head = self._head(200, "application/json", {"content-length": str(len(body))})
            await self.connection.write(head + body[: len(body) // 2])
            return Ending("cut", 200)
        await self._whole(200, body, "application/json", {})
        return Ending("answered", 200, good=is_good(reply))

    async def _stream(self, reply: Completion) -> Ending:
        pieces = list(split(reply.text, self.chunks))
        start = time.monotonic()
        await asyncio.sleep(self.seconds * FIRST_TOKEN)
        await self.connection.write(self._head(200, "text/event-stream", {"transfer-encoding": "chunked"}))
        await self._event(self._part({"role": "assistant", "content": ""}))
        broken = reply.cut or reply.error is not None
        for place, piece in enumerate(pieces[: (len(pieces) + 1) // 2] if broken else pieces, start=1):
            due = start + self.seconds * (FIRST_TOKEN + (1 - FIRST_TOKEN) * place / len(pieces))
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self._event(self._part({"content": piece}))
        if reply.cut:
            return Ending("cut", 200)
        await self._stream_end(reply)
        return Ending("answered", 200, good=is_good(reply))

    async def _stream_end(self, reply: Completion) -> None:
        if reply.error is not None:
            await self._event({"error": dict(reply.error)})
        elif reply.finish is not None:
            await self._event(self._part({}, reply.finish))
            if self.call.include_usage:
                await self._event({**self._part({}), "choices": [], "usage": usage(self.call, reply.text)})
            await self.connection.write(chunk_bytes(b"data: [DONE]\n\n"))
        await self.connection.write(chunk_bytes(b""))

    async def _event(self, value: Mapping[str, Any]) -> None:
        data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        await self.connection.write(chunk_bytes(b"data: " + data + b"\n\n"))

    def _part(self, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish}
        return {**heading(self.call, self.request_id, "chat.completion.chunk"), "choices": [choice]}


SIMULATED = {"server": "redrive-simulated-provider", "x-redrive-simulated": "1"}


def heading(call: Call, request_id: str, kind: str) -> dict[str, Any]:
    """The fields that every object of an answer starts with."""
    return {
        "id": "chatcmpl-" + request_id.removeprefix("req_"),
        "object": kind,
        "created": int(time.time()),
        "model": answering_model(call.model),
        "system_fingerprint": FINGERPRINT,
    }


def answering_model(asked: str) -> str:
    """The name of the model that answers: whatever was asked for, marked as simulated."""
    return asked if asked.startswith("simulated-") else f"simulated-{asked or 'small'}"


def completion_object(call: Call, request_id: str, reply: Completion) -> dict[str, Any]:
    """The answer as one object, for a client that does not stream."""
    message = {"role": "assistant", "content": reply.text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
    return {
        **heading(call, request_id, "chat.completion"),
        "choices": [choice],
        "usage": usage(call, reply.text),
    }


def usage(call: Call, text: str) -> dict[str, int]:
    """Token counts of a call and its answer."""
    asked, answered = count_tokens(call.text), count_tokens(text)
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


def is_good(reply: Completion) -> bool:
    """Whether a reply is an answer that a client may take for whole."""
    return reply.finish == "stop" and not reply.cut and reply.error is None


def limited(reply: Completion, max_tokens: int | None) -> Completion:
    """The reply, cut off with finish reason ``length`` where the client allowed fewer tokens than it has."""
    tokens = count_tokens(reply.text)
    if max_tokens is None or tokens <= max_tokens or reply.finish is None:
        return reply
    return Completion(reply.text[: len(reply.text) * max_tokens // tokens], "length", reply.cut, reply.error)


def split(text: str, most: int) -> Iterator[str]:
    """A text in at most ``most`` pieces of about a token or more; nothing for an empty text."""
    size = max(4, -(-len(text) // most))
    return (text[start : start + size] for start in range(0, len(text), size))
