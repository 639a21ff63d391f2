"""``GET /api/v1/tasks/{id}/events``: server-sent events from a small ASGI app beside Django.

A Django view would hold a thread and a database connection for each stream. Here a stream is a coroutine, and all
streams of a process share one look at the database (``watch``).

Events: ``state`` first, where the task stands; ``move`` for each move, with its number as the id; ``progress`` when it
changed; ``end`` with the state once the task has ended, and the stream closes. ``Last-Event-ID`` or ``?after=N``: every
move after number N first, from the history.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from types import FrameType
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from tasks.api import problems
from tasks.api.history import Opened, Refused, look, open_stream, still_allowed
from tasks.api.watch import Listener, Watch
from tasks.states import FINAL

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

PATH = re.compile(r"/api/v1/tasks/(?P<id>[0-9a-fA-F-]{36})/events\Z")
MOST_STREAMS = 1_000
#: A silent stream says this often that it is there, for the sake of proxies.
PING_SECONDS = 15.0
#: A key is looked at again after this time, at the next event or ping: once revoked, it ends its streams in a minute.
RECHECK_SECONDS = 45.0
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # nginx would keep events back until its buffer is full
    (b"x-accel-buffering", b"no"),
]


class EventStreams:
    """Answers the streams' path itself, and hands everything else to ``app``."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._watch = Watch(look)
        self._stop = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the server's lifespan."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET" and (found := PATH.match(scope["path"])):
            await self._answer(found["id"], scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer(self, task_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            opened = await self._open(task_id, scope)
        except Refused as refused:
            await _refuse(send, refused)
            return
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        gone = asyncio.create_task(_until_gone(receive))
        try:
            async with self._watch.listen(opened.state) as listener:
                await _Stream(opened, listener, send, gone, self._stop).run()
        finally:
            gone.cancel()
        if not gone.done() or gone.cancelled():
            await send({"type": "http.response.body", "body": b""})

    async def _open(self, task_id: str, scope: Scope) -> Opened:
        if self._watch.count >= MOST_STREAMS:
            raise Refused(503, f"This process streams to {MOST_STREAMS} callers already. Try again.")
        try:
            wanted = UUID(task_id)
        except ValueError:
            raise Refused(404, "There is no such task.") from None
        return await open_stream(_bearer(scope), wanted, _after(scope))

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._end_streams_at_signals()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._stop.set()
        await send({"type": "lifespan.shutdown.complete"})

    def _end_streams_at_signals(self) -> None:
        """Let streams end when the server is told to stop: it would wait for them otherwise."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)
            if not callable(before):
                continue

            def stop(received: int, frame: FrameType | None, before: Any = before) -> None:
                loop.call_soon_threadsafe(self._stop.set)
                before(received, frame)

            with suppress(ValueError):  # not the main thread: somebody else's server
                signal.signal(number, stop)


class _Stream:
    """One open stream."""

    def __init__(
        self, opened: Opened, listener: Listener, send: Send, gone: asyncio.Task[None], stop: asyncio.Event
    ) -> None:
        self._opened, self._listener, self._send = opened, listener, send
        self._gone, self._stopping = gone, asyncio.create_task(_until(stop))
        self._progress = opened.state["progress"]
        self._checked = asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Write until the task has ended, the caller is gone, the server stops or the key is revoked."""
        state = self._opened.state
        try:
            await self._write("state", state)
            for move in self._opened.moves:
                await self._write("move", move, number=move["seq"])
            while not await self._ended(state) and await self._wait():
                news = self._listener.take()
                state = news.state
                await self._tell(news.moves, state)
        finally:
            self._stopping.cancel()

    async def _ended(self, state: dict[str, Any]) -> bool:
        if state["status"] not in FINAL:
            return False
        await self._write("end", state)
        return True

    async def _tell(self, moves: list[dict[str, Any]], state: dict[str, Any]) -> None:
        for move in moves:
            await self._write("move", move, number=move["seq"])
        if state["progress"] != self._progress:
            self._progress = state["progress"]
            await self._write("progress", {"progress": self._progress})

    async def _wait(self) -> bool:
        """Whether there is more to do: until news come, with a ping now and then."""
        while True:
            bell = asyncio.create_task(_until(self._listener.bell))
            done, _ = await asyncio.wait(
                {bell, self._gone, self._stopping}, timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            bell.cancel()
            if self._gone in done or self._stopping in done or not await self._allowed():
                return False
            if bell in done:
                return True
            await self._send_text(": ping\n\n")

    async def _allowed(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._checked < RECHECK_SECONDS:
            return True
        self._checked = now
        return await still_allowed(self._opened.key_id)

    async def _write(self, event: str, data: dict[str, Any], number: int | None = None) -> None:
        shown = {name: value for name, value in data.items() if name != "event_seq"}
        identity = data["event_seq"] if event == "state" and not self._opened.moves else number
        head = f"id: {identity}\n" if identity is not None else ""
        await self._send_text(f"{head}event: {event}\ndata: {json.dumps(shown, default=_plain)}\n\n")

    async def _send_text(self, text: str) -> None:
        await self._send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _until(event: asyncio.Event) -> None:
    await event.wait()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def _refuse(send: Send, refused: Refused) -> None:
    body = json.dumps(problems.body_of(refused.status, str(refused))).encode()
    length = {"Content-Length": str(len(body))}
    headers = {"Content-Type": problems.MEDIA_TYPE, **length, **problems.headers_of(refused.status)}
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def _bearer(scope: Scope) -> str:
    scheme, _, token = _header(scope, b"authorization").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _after(scope: Scope) -> int | None:
    """The move that the caller has seen last. Raises Refused where it names none."""
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    text = query["after"][-1] if "after" in query else _header(scope, b"last-event-id")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise Refused(400, "after, or Last-Event-ID, must be the id of an event: a whole number.")
    return int(text)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no JSON")
