"""Failures are read beside the loop, whatever they hold; and no key that was sent is stored with them."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from deadletters.models import DeadLetter
from tasks.engine import registry
from tasks.engine.context import Context
from tasks.engine.runner import Abort, Running
from tasks.errors import known
from tasks.models import Attempt, Kind, Provider, Task, TaskEvent
from tests.chat import error
from tests.provider import ScriptedProvider
from tests.tasks.engine import bench
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db
KEY = "wombat-forty/two"


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Context], Any]], Kind]:
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))

    def make(function: Callable[[Context], Any]) -> Kind:
        registry.handler("to.be.judged")(function)
        return Kind.objects.create(name="bench", handler="to.be.judged", jitter=0.0)

    return make


class Watched(Exception):
    """Notes the threads that read it, and keeps them until it may be read."""

    def __init__(self) -> None:
        self.readers: set[int] = set()
        self.being_read, self.may_be_read = threading.Event(), threading.Event()

    def __str__(self) -> str:
        self.readers.add(threading.get_ident())
        self.being_read.set()
        assert self.may_be_read.wait(20), "nothing went on in the loop while this was read"
        return "it broke"


def test_the_loop_goes_on_while_a_failure_is_read(handled: Callable[..., Kind]) -> None:
    watched = Watched()

    async def fail(context: Context) -> None:
        raise watched

    async def meddle(running: Running) -> None:
        await asyncio.to_thread(watched.being_read.wait, 20)
        watched.may_be_read.set()

    done = bench.attempt(handled(fail), meddle=meddle)
    assert done.outcome == "failed" and "it broke" in done.last_error
    assert threading.get_ident() not in watched.readers


@pytest.mark.parametrize("why", list(Abort))
def test_a_failure_is_read_to_its_end_though_the_attempt_is_stopped(handled: Callable[..., Kind], why: Abort) -> None:
    """The work has failed already; what that is worth the fence and the cancel mark decide."""
    watched = Watched()

    async def fail(context: Context) -> None:
        raise watched

    async def meddle(running: Running) -> None:
        await asyncio.to_thread(watched.being_read.wait, 20)
        running.stop(why)
        await asyncio.sleep(0)
        watched.may_be_read.set()

    done = bench.attempt(handled(fail), meddle=meddle)
    assert (done.outcome, done.error_code) == ("failed", "AI_UNKNOWN_ERROR") and "it broke" in done.last_error


@pytest.mark.parametrize(
    "text", ["password=a;" * 400_000, "'" * 2**22, "[" * 2**22, "a" * 2**22, "=" * 2**22, '{"a":' * 800_000]
)
def test_megabytes_of_anything_are_stored_cut(handled: Callable[..., Kind], text: str) -> None:
    async def fail(context: Context) -> None:
        raise RuntimeError(text)

    done = bench.attempt(handled(fail))
    assert done.outcome == "failed" and 0 < len(done.last_error) <= 16 * 1024
    assert len(json.dumps(done.failure)) < 512 * 1024


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedProvider]:
    monkeypatch.setattr(known, "_known", {})
    monkeypatch.setattr(known, "_pattern", None)
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    with ScriptedProvider() as scripted:
        yield scripted


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    "echo",
    [
        KEY,
        quote(KEY, safe=""),
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        f"Bearer {KEY}",
    ],
)
def test_the_key_that_was_sent_is_stored_nowhere(provider: ScriptedProvider, echo: str, streamed: bool) -> None:
    provider.replies(error(401, f"no such key: {echo}", code="invalid_api_key", x_echo=echo, x_request_id="req_1"))
    where = Provider.objects.create(name="scripted", base_url=provider.base_url, api_key_env="SCRIPTED_KEY")
    done = bench.attempt(world.prompt_kind(provider=where, stream=streamed), {"text": "hello"})
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert done.task.status == "dead" and done.error_code == "AI_AUTH_FAILED"
    stored = [
        json.dumps(row, default=str)
        for model in (Attempt, Task, TaskEvent, DeadLetter, Provider)
        for row in model.objects.values()
    ]
    hidden = ("wombat", echo[-12:])
    assert not [row for row in stored if any(part in row for part in hidden)]
    assert "[masked]" in Provider.objects.get().hold_reason and "[masked]" in DeadLetter.objects.get().last_error
