"""GET /api/v1/tasks/{id}/events, from a real uvicorn, read as it comes."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse
from uuid import UUID, uuid4

import pytest

from tasks import lifecycle
from tasks.api import stream as asgi_streams
from tasks.models import ApiKey, Task
from tasks.states import Status
from tests.deadletters import deaths
from tests.factories import make_task
from tests.site import serve
from tests.tasks.api.keys import make_key

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    id: str
    data: Any


class Stream:
    """A caller that reads one stream over a plain socket."""

    def __init__(self, url: str, path: str, **headers: str) -> None:
        where = urlparse(url)
        self._socket = socket.create_connection((where.hostname, where.port), timeout=20)
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {where.netloc}",
            *(f"{name}: {text}" for name, text in headers.items()),
        ]
        self._socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self._file = self._socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers = dict(self._header_lines())

    def _header_lines(self) -> Iterator[tuple[str, str]]:
        while line := self._file.readline().strip():
            name, _, text = line.decode().partition(": ")
            yield name.lower(), text

    def _chunk(self) -> bytes:
        size = int(self._file.readline() or b"0", 16)
        chunk = self._file.read(size)
        self._file.readline()
        return chunk

    def event(self) -> Event | None:
        """The next event, or None where the stream ended."""
        while chunk := self._chunk():
            fields = dict(line.partition(": ")[::2] for line in chunk.decode().splitlines() if line)
            if "event" in fields:
                return Event(fields["event"], fields.get("id", ""), json.loads(fields["data"]))
        return None

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._socket.close()


def knock(url: str, path: str, key: str, **headers: str) -> Stream:
    """A stream, or its refusal; once more where the process had no connection to spare and asked to come again."""
    opened = Stream(url, path, Authorization=f"Bearer {key}", **headers)
    if opened.status != 503:
        return opened
    opened.close()
    return Stream(url, path, Authorization=f"Bearer {key}", **headers)


@contextmanager
def stream(url: str, task_id: Any, query: str = "", key: str | None = None, **headers: str) -> Iterator[Stream]:
    """A stream of the task's events, with a new key where none is given."""
    key = make_key(name=f"shop {uuid4()}") if key is None else key
    opened = knock(url, f"/api/v1/tasks/{task_id}/events{query}", key, **headers)
    try:
        yield opened
    finally:
        opened.close()


def names(stream: Stream, count: int) -> list[str]:
    """The names of the next events, moves with what they were."""
    events = [stream.event() for _number in range(count)]
    return [f"move {event.data['type']}" if event and event.name == "move" else event.name for event in events if event]


def test_from_ready_to_its_end(site_url: str) -> None:
    task = deaths.submit()
    with stream(site_url, task.pk) as open_stream:
        assert (open_stream.status, open_stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        first = open_stream.event()
        assert first and (first.name, first.id, first.data["status"]) == ("state", "1", "ready")
        holder, (claimed,) = deaths.claim()
        assert names(open_stream, 1) == ["move claimed"]
        Task.objects.filter(pk=task.pk).update(progress={"step": 1, "total": 3})
        progress = open_stream.event()
        assert progress and (progress.name, progress.data) == ("progress", {"progress": {"step": 1, "total": 3}})
        lifecycle.finish(holder.pk, [deaths.end(claimed, deaths.Outcome.SUCCEEDED, result_text='"done"')])
        move, end = open_stream.event(), open_stream.event()
        assert move and (move.data["to_status"], move.id) == ("succeeded", "3")
        assert end and (end.name, end.data["status"]) == ("end", "succeeded")
        assert open_stream.event() is None


def test_a_death_tells_no_error(site_url: str) -> None:
    deaths.submit()
    deaths.run()
    task = Task.objects.get()
    with stream(site_url, task.pk, "?after=0") as open_stream:
        events = [open_stream.event() for _number in range(5)]
    text = json.dumps([event.data for event in events if event])
    assert [event.name for event in events if event] == ["state", "move", "move", "move", "end"]
    assert "AI_PROVIDER_ERROR" in text
    assert "on fire" not in text and "Traceback" not in text


@pytest.mark.parametrize("way", ["query", "header"])
def test_it_goes_on_after_the_move_that_was_seen(site_url: str, way: str) -> None:
    deaths.submit()
    deaths.run()
    task = Task.objects.get()
    lifecycle.reprocess([task.pk], actor="ana")
    query, headers = ("?after=2", {}) if way == "query" else ("", {"Last-Event-ID": "2"})
    with stream(site_url, task.pk, query, **headers) as open_stream:
        events = [open_stream.event() for _number in range(3)]
        assert [(event.name, event.id) for event in events if event] == [("state", ""), ("move", "3"), ("move", "4")]
        lifecycle.cancel([task.pk], actor="ana")
        assert names(open_stream, 2) == ["move cancelled", "end"]


def test_two_callers_hear_the_same(site_url: str) -> None:
    task = make_task(Status.READY)
    with stream(site_url, task.pk) as one, stream(site_url, task.pk) as two:
        assert names(one, 1) == names(two, 1) == ["state"]
        lifecycle.cancel([task.pk], actor="ana")
        assert names(one, 2) == names(two, 2) == ["move cancelled", "end"]


@pytest.mark.parametrize(
    ("task", "query", "key", "status", "detail"),
    [
        (UUID(int=7), "", "redrive_x", 401, "Send 'Authorization: Bearer KEY'"),
        (UUID(int=7), "", "", 401, "Send 'Authorization: Bearer KEY'"),
        (UUID(int=7), "", None, 404, "There is no such task."),
        ("-" * 36, "", None, 404, "There is no such task."),
        (UUID(int=7), "?after=-1", None, 400, "must be the id of an event"),
        (UUID(int=7), "?after=9999999999999", None, 400, "must be the id of an event"),
        (UUID(int=7), "?after=%00", None, 400, "must be the id of an event"),
    ],
)
def test_a_stream_that_is_not_opened(
    site_url: str, task: UUID | str, query: str, key: str | None, status: int, detail: str
) -> None:
    with stream(site_url, task, query, key) as refused:
        assert (refused.status, refused.headers["content-type"]) == (status, "application/problem+json")
        body = json.loads(refused._file.read(int(refused.headers["content-length"])))
        assert body["status"] == status and detail in body["detail"]


def test_streams_hold_no_connection(site_url: str, second_connection: Any) -> None:
    """Forty open streams share the pool that pages have."""
    task, key = make_task(Status.READY), make_key()
    streams = [knock(site_url, f"/api/v1/tasks/{task.pk}/events", key) for _n in range(40)]
    try:
        assert all(names(one, 1) == ["state"] for one in streams)
        mine = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'redrive' AND datname = current_database()"
        )
        assert second_connection.execute(mine).fetchone()[0] <= 12
        lifecycle.cancel([task.pk], actor="ana")
        assert all(names(one, 2) == ["move cancelled", "end"] for one in streams)
    finally:
        for one in streams:
            one.close()


def test_a_silent_stream_says_that_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy cuts what is silent. The looks meanwhile, two a second, find nothing new and are no news."""
    monkeypatch.setattr(asgi_streams, "PING_SECONDS", 0.6)  # longer than the pause between two looks
    task, key = make_task(Status.READY), make_key()
    sent: list[bytes] = []

    async def caller() -> None:
        hung_up = asyncio.Event()

        async def receive() -> dict[str, str]:
            await hung_up.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))
            if sent[-1] == b": ping\n\n":
                hung_up.set()

        scope = {"type": "http", "method": "GET", "path": f"/api/v1/tasks/{task.pk}/events", "query_string": b""}
        headers = [(b"authorization", f"Bearer {key}".encode())]
        async with asyncio.timeout(20):
            await asgi_streams.EventStreams(None)({**scope, "headers": headers}, receive, send)

    asyncio.run(caller())
    assert [line.partition(b"\n")[0] for line in sent if line] == [b"id: 1", b": ping"]


def test_a_server_that_stops_ends_its_streams(test_database_url: str) -> None:
    """At once, and not when its patience ends; the callers see a proper end."""
    task = make_task(Status.READY)
    with serve(test_database_url) as (url, process):
        with stream(url, task.pk) as open_stream:
            assert names(open_stream, 1) == ["state"]
            process.terminate()
            assert open_stream.event() is None
        assert process.wait(timeout=15) is not None


def test_a_key_that_is_revoked_opens_nothing_more(site_url: str) -> None:
    task, key = make_task(Status.READY), make_key()
    ApiKey.objects.all().delete()
    with stream(site_url, task.pk, key=key) as refused:
        assert refused.status == 401
