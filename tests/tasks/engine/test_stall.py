"""``stall_seconds``: an attempt that tells nothing any more is aborted; one that goes on telling is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tasks.engine import registry
from tasks.engine.context import Context
from tasks.models import Kind, Provider
from tests.chat import chunk, stream
from tests.provider import ScriptedProvider
from tests.tasks.engine import bench
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db
STALL = 3.0
MESSAGE = "no token or progress for 3 s; the call was aborted"


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as scripted:
        yield scripted


@pytest.fixture
def kind(provider: ScriptedProvider) -> Kind:
    where = Provider.objects.create(name="scripted", base_url=provider.base_url)
    return world.prompt_kind(provider=where, stall_seconds=STALL, timeout_seconds=30)


def words(count: int) -> list[Any]:
    return [chunk("", role="assistant"), *(chunk(f"word{n} ") for n in range(count))]


def test_a_stream_that_falls_silent(kind: Kind, provider: ScriptedProvider) -> None:
    """The provider sees the closed connection."""
    provider.replies(stream(words(3), done=False, end="hang"))
    done = bench.attempt(kind, {"text": "hello"})
    assert (done.outcome, done.error_code) == ("failed", "AI_MODEL_TIMEOUT")
    assert MESSAGE in done.last_error
    (request,) = provider.requests
    request.wait_closed()
    assert request.written == 4


def test_a_slow_stream_that_goes_on(kind: Kind, provider: ScriptedProvider) -> None:
    """Longer than the stall in all, never silent for so long."""
    provider.replies(stream([*words(9), chunk(finish="stop")], pause=STALL / 6))
    done = bench.attempt(kind, {"text": "hello"})
    (request,) = provider.requests
    assert request.answered_at is not None and request.answered_at - request.at > STALL
    assert done.outcome == "succeeded"


def test_a_provider_that_says_nothing_at_all(kind: Kind, provider: ScriptedProvider) -> None:
    provider.replies(stream([], done=False, delay=30))
    assert MESSAGE in bench.attempt(kind, {"text": "hello"}).last_error


Handled = Callable[..., Kind]


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> Handled:
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))

    def make(function: Callable[[Context], Awaitable[Any] | Any]) -> Kind:
        registry.handler("on.the.bench")(function)
        return Kind.objects.create(name="bench", handler="on.the.bench", stall_seconds=STALL, timeout_seconds=30)

    return make


def test_a_handler_that_tells_nothing(handled: Handled) -> None:
    async def silent(context: Context) -> None:
        await asyncio.sleep(30)

    assert MESSAGE in bench.attempt(handled(silent)).last_error


def test_a_handler_that_tells_its_progress(handled: Handled) -> None:
    async def telling(context: Context) -> str:
        for step in range(8):
            await asyncio.sleep(STALL / 6)
            context.progress(step, 8)
        return "done"

    assert bench.attempt(handled(telling)).task.result == "done"


def test_a_thread_that_tells_its_progress(handled: Handled) -> None:
    def telling(context: Context) -> str:
        for step in range(8):
            time.sleep(STALL / 6)  # shorter than the stall, longer in all
            context.progress(step, 8)
        return "done"

    assert bench.attempt(handled(telling)).task.result == "done"


def test_without_the_setting_only_the_timeout_counts(handled: Handled) -> None:
    async def silent(context: Context) -> str:
        await asyncio.sleep(2 * STALL)
        return "done"

    kind = handled(silent)
    kind.stall_seconds = None
    kind.save()
    assert bench.attempt(kind).task.result == "done"
