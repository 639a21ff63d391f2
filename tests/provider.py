"""A scripted provider: a real HTTP/1.1 server on a real socket that answers exactly what a test tells it to.

    from tests.chat import chat, error

    with ScriptedProvider() as provider:
        provider.script(lambda request, n: chat(request, "hello") if n > 1 else error(503, "busy"))
        ...                                     # calls to provider.base_url
        assert provider.requests[0].json["model"] == "m"

It runs in a thread of its own, writes each piece of a body as one HTTP chunk, can cut, reset or hang at any piece, and
notes when each request came and when its client went away. Written on bare sockets, so that no server library mends
what a test breaks.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

#: Seconds after which a test that waits for something here gives up.
DEADLINE = 10.0

Ending = Literal["complete", "cut", "reset", "hang"]


@dataclass(frozen=True)
class Reply:
    """What to answer.

    ``pieces`` are the parts of the body in the order of writing. ``end`` says what happens after the last of them:
    ``complete`` ends the body well, ``cut`` closes the socket inside it, ``reset`` sends a RST, ``hang`` keeps silent
    until the client goes. ``status`` None sends no response at all before that. ``framing``: ``chunked``, ``length``
    (content-length of all pieces, so that ``cut`` after fewer is noticed), ``eof`` (the body lasts until the close).
    ``delay`` is waited before the response, ``pause`` before each piece but the first, both in seconds.
    """

    pieces: Sequence[bytes] = ()
    status: int | None = 200
    headers: dict[str, str] = field(default_factory=dict)
    framing: Literal["chunked", "length", "eof"] = "chunked"
    end: Ending = "complete"
    #: With ``length``: what the header claims; None: what is sent.
    length: int | None = None
    delay: float = 0.0
    pause: float = 0.0


@dataclass
class Received:
    """One request. Times are ``time.monotonic()`` of the test process."""

    json: Any
    path: str
    headers: dict[str, str]
    at: float
    #: Which connection it came on, from 1: tells whether clients use theirs again.
    connection: int
    #: Pieces of the reply that were written.
    written: int = 0
    answered_at: float | None = None
    closed_at: float | None = None
    closed: threading.Event = field(default_factory=threading.Event)

    def wait_closed(self, timeout: float = DEADLINE) -> float:
        """Wait until the connection is gone; returns when that was."""
        if not self.closed.wait(timeout) or self.closed_at is None:
            raise AssertionError(f"the connection was still open after {timeout} s")
        return self.closed_at


Script = Callable[[Any, int], Reply]


class ScriptedProvider:
    """The server; a context manager. ``base_url`` ends in ``/v1``, ``requests`` holds all that came, oldest first."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.failures: list[BaseException] = []
        self.port = 0
        self._script: Script = lambda request, n: Reply(status=404)
        self._arrived = threading.Condition()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._connections: set[_Connection] = set()
        self._connected = 0
        self._thread = threading.Thread(target=self._serve, name="scripted-provider", daemon=True)

    @property
    def base_url(self) -> str:
        """What to configure as the provider's address."""
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, script: Script) -> None:
        """Answer each request with ``script(request_json, n)``, n counting the requests from 1."""
        self._script = script

    def replies(self, *replies: Reply) -> None:
        """Answer with these in turn, with the last for ever."""
        self.script(lambda request, n: replies[min(n, len(replies)) - 1])

    def wait_for(self, count: int, timeout: float = DEADLINE) -> list[Received]:
        """Wait until so many requests have come."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self.requests) >= count, timeout):
                raise AssertionError(f"{len(self.requests)} requests after {timeout} s, not {count}")
            return list(self.requests)

    def __enter__(self) -> ScriptedProvider:
        self._thread.start()
        if not self._ready.wait(DEADLINE):
            raise RuntimeError("the scripted provider did not start")
        return self

    def stop(self) -> None:
        """Close every connection and the port: from now on calls are refused."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(DEADLINE)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.stop()
        if self.failures and error is None:
            raise AssertionError("the script failed") from self.failures[0]

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=1024)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for connection in list(self._connections):
            connection.abort()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def _answer(self, received: Received) -> Reply:
        with self._arrived:
            self.requests.append(received)
            number = len(self.requests)
            self._arrived.notify_all()
        try:
            return self._script(received.json, number)
        except BaseException as error:
            self.failures.append(error)
            return Reply([repr(error).encode()], status=500)


class _Connection(asyncio.Protocol):
    def __init__(self, provider: ScriptedProvider) -> None:
        self.provider = provider
        self.transport: asyncio.Transport
        self.buffer = b""
        self.current: Received | None = None
        self.task: asyncio.Task[None] | None = None
        self.number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.provider._connections.add(self)
        self.provider._connected += 1
        self.number = self.provider._connected
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found or self.task is not None:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        body = json.loads(rest[:length]) if length else None
        self.current = Received(body, first.split(" ")[1], headers, time.monotonic(), self.number)
        self.task = self.provider._loop.create_task(self._respond(self.current))

    def connection_lost(self, error: Exception | None) -> None:
        self.provider._connections.discard(self)
        if self.task is not None:
            self.task.cancel()
        if self.current is not None:
            self.current.closed_at = time.monotonic()
            self.current.closed.set()

    def abort(self) -> None:
        """Send a RST: with linger 0 the kernel throws away what is unsent."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    async def _respond(self, received: Received) -> None:
        reply = self.provider._answer(received)
        await asyncio.sleep(reply.delay)
        if reply.status is not None:
            self.transport.write(_head(reply))
            for piece in reply.pieces:
                await asyncio.sleep(reply.pause if received.written else 0)
                self.transport.write(_framed(piece) if reply.framing == "chunked" else piece)
                received.written += 1
        received.answered_at = time.monotonic()
        await self._finish(reply)

    async def _finish(self, reply: Reply) -> None:
        if reply.end == "hang":
            await asyncio.Event().wait()
        elif reply.end == "reset":
            # Let the client read what was sent: a RST would make its kernel drop it.
            await asyncio.sleep(0.05)
            self.abort()
        elif reply.end == "cut" or reply.framing == "eof":
            self.transport.close()
        else:
            if reply.framing == "chunked":
                self.transport.write(b"0\r\n\r\n")
            self.task = None
            if self.buffer:
                self.data_received(b"")


def _head(reply: Reply) -> bytes:
    headers = {"content-type": "application/json", **{name.lower(): value for name, value in reply.headers.items()}}
    if reply.framing == "chunked":
        headers["transfer-encoding"] = "chunked"
    elif reply.framing == "length":
        headers["content-length"] = str(sum(map(len, reply.pieces)) if reply.length is None else reply.length)
    else:
        headers["connection"] = "close"
    lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in headers.items() if value)]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def _framed(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece) if piece else b""
