"""Asking: functions of all sorts, and whatever they do, an answer is stored and the process lives on."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from deadletters.models import DeadLetter
from tasks import done, lifecycle, not_done, still_unknown
from tasks.engine import registry
from tasks.engine.context import UnknownContext
from tasks.engine.database import DatabaseThread
from tasks.engine.identity import Identity
from tasks.engine.reconciler import Reconciler
from tasks.errors import BUILT_IN
from tasks.models import Kind, Task, TaskEvent
from tests.cluster import wait_until
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)

Reconciled = Callable[..., Task]


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> Reconciled:
    """Makes an unknown task about which the function given is asked."""
    monkeypatch.setattr(registry, "_reconcilers", {})

    def make(function: Callable[[UnknownContext], Any], payload: Any = None, **fields: Any) -> Task:
        registry.reconcile("refund")(function)
        gone = world.worker("refund")
        Kind.objects.create(name="refund.execute", handler="refund", **fields)
        task = lifecycle.submit("refund.execute", payload, session_id="s-1", tags=["oak"])
        assert len(lifecycle.claim(gone, 1, ["refund"])) == 1
        world.age("tasks_workerprocess", "lease_until", 3_600, f"id = {gone}")
        lifecycle.mark_lost(leases_count=True)
        lifecycle.rescue(["refund"])
        return world.stored(task.id)

    return make


def ask(task: Task, until: Callable[[], Any] | None = None) -> Task:
    """Let a process ask until something is told about the task; the task as it stands then."""

    def told() -> Any:
        return TaskEvent.objects.filter(task=task, seq__gt=task.event_seq).exists()

    async def scenario() -> None:
        database = DatabaseThread("reconciler")
        identity = Identity("host/redrive/1", 10, 60.0)
        assert await identity.take([], registry.reconcilers())
        reconciler = Reconciler(database, identity, lambda: BUILT_IN)
        running = asyncio.create_task(reconciler.run())
        try:
            await asyncio.to_thread(wait_in_thread, until or told)
            reconciler.stop()
            await reconciler.finished(10)
        finally:
            running.cancel()
            await identity.give_up()
            await database.close()

    asyncio.run(scenario())
    return world.stored(task.id)


def wait_in_thread(check: Callable[[], Any]) -> None:
    try:
        wait_until(check, "the asking told of")
    finally:
        connection.close()


def last_event(task: Task) -> TaskEvent:
    return TaskEvent.objects.filter(task=task).latest("seq")


# --- answers ----------------------------------------------------------------------------------------------------------


def test_an_async_function_is_told_all_and_its_result_is_cleaned(unknown: Reconciled) -> None:
    seen: list[UnknownContext] = []

    async def look(context: UnknownContext) -> Any:
        seen.append(context)
        return done({"thread": threading.current_thread().name, "odd": "a\x00b"})

    task = ask(unknown(look, {"amount": 5}))
    assert (task.status, task.result) == ("succeeded", {"thread": "MainThread", "odd": "a\N{REPLACEMENT CHARACTER}b"})
    (context,) = seen
    attempt = task.attempts.get()
    assert (context.task_id, context.attempt_id, context.started_at) == (task.id, attempt.id, attempt.started_at)
    assert (context.kind, context.cycle, context.payload, context.asks) == ("refund.execute", 1, {"amount": 5}, 1)
    assert (context.session_id, context.user_id, context.trace_id, context.tags) == ("s-1", "", "", ["oak"])


def test_a_sync_function_runs_in_a_thread(unknown: Reconciled) -> None:
    task = ask(unknown(lambda context: done(threading.current_thread().name)))
    assert task.result.startswith("reconcile")


def test_what_wraps_a_coroutine_function_is_awaited(unknown: Reconciled) -> None:
    async def look(context: UnknownContext, extra: int) -> Any:
        return done(extra)

    assert ask(unknown(functools.partial(look, extra=7))).result == 7


def test_not_done_is_ready_again(unknown: Reconciled) -> None:
    assert ask(unknown(lambda context: not_done)).status == "ready"


def test_still_unknown_waits(unknown: Reconciled) -> None:
    task = ask(unknown(lambda context: still_unknown))
    assert (task.status, task.asks) == ("unknown", 1)
    assert "error" not in last_event(task).data


def test_a_result_that_cannot_be_stored_is_a_letter(unknown: Reconciled) -> None:
    task = ask(unknown(lambda context: done("x" * (4 * 1024 * 1024 + 1))))
    assert (task.status, DeadLetter.objects.get().reason) == ("dead", "unstorable")
    assert "can be stored" in last_event(task).data["error"]


# --- what is no answer ------------------------------------------------------------------------------------------------


def broken(context: UnknownContext) -> Any:
    raise ConnectionError("the shop is away, password=hunter2secret")


async def broken_async(context: UnknownContext) -> Any:
    raise StopAsyncIteration("odd")


def quits(context: UnknownContext) -> Any:
    sys.exit(3)


async def interrupts(context: UnknownContext) -> Any:
    raise KeyboardInterrupt


def stops(context: UnknownContext) -> Any:
    raise StopIteration


async def slow(context: UnknownContext) -> Any:
    await asyncio.sleep(3600)


async def deaf(context: UnknownContext) -> Any:
    heard = 0
    while heard < 2:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            heard += 1


NO_ANSWERS: dict[str, tuple[Callable[[UnknownContext], Any], str]] = {
    "an error": (broken, "ConnectionError: the shop is away, password=[masked]"),
    "an error in the loop": (broken_async, "StopAsyncIteration"),
    "an exit": (quits, "SystemExit"),
    "an interrupt": (interrupts, "KeyboardInterrupt"),
    "a stop": (stops, "StopIteration"),
    "no call": (lambda context: done, "returned function; it must return done(result), not_done or still_unknown"),
    "a value": (lambda context: True, "returned bool; it must return"),
    "nothing": (lambda context: None, "returned NoneType; it must return"),
    "too slow": (slow, "1 s"),
    "deaf": (deaf, "1 s"),
}


@pytest.mark.parametrize(("function", "error"), NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
def test_what_is_no_answer_is_still_unknown_and_says_why(
    unknown: Reconciled, function: Callable[[UnknownContext], Any], error: str
) -> None:
    task = ask(unknown(function, timeout_seconds=1))
    event = last_event(task)
    assert (task.status, task.asks, event.type) == ("unknown", 1, "asked")
    assert error in event.data["error"]
    assert "hunter2" not in str(event.data)


def test_a_thread_that_overruns_keeps_nobody_waiting(unknown: Reconciled) -> None:
    """Its value comes too late and is dropped; the task is asked about again meanwhile."""
    leave, calls = threading.Event(), []

    def look(context: UnknownContext) -> Any:
        calls.append(context.asks)
        if context.asks == 1:
            leave.wait(60)
            return done("late")
        return done("in time")

    try:
        task = unknown(look, timeout_seconds=1)
        task = ask(task, lambda: world.stored(task.id).status == "succeeded")
    finally:
        leave.set()
    assert (task.result, calls) == ("in time", [1, 2])


# --- windows ----------------------------------------------------------------------------------------------------------


def test_a_long_question_keeps_its_window(unknown: Reconciled, settings: Settings) -> None:
    settings.REDRIVE_LEASE_SECONDS = 4.0
    leave, windows = threading.Event(), set()

    def look(context: UnknownContext) -> Any:
        leave.wait(60)
        return done()

    task = unknown(look)

    def renewed_twice() -> bool:
        windows.add(world.stored(task.id).ask_after)
        if len(windows) > 3:  # when it became unknown, when it was asked, and two more
            leave.set()
        return world.stored(task.id).status == "succeeded"

    task = ask(task, renewed_twice)
    assert TaskEvent.objects.filter(task=task, type="reconciled").get().data["asks"] == 1


def test_a_question_about_a_task_that_moved_on_is_given_up(unknown: Reconciled, settings: Settings) -> None:
    settings.REDRIVE_LEASE_SECONDS = 1.0
    begun, gone = threading.Event(), threading.Event()

    async def look(context: UnknownContext) -> Any:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            gone.set()

    task = unknown(look)

    def cancelled() -> bool:
        if begun.is_set():
            lifecycle.cancel([task.id], actor="ana")
        return gone.is_set()

    task = ask(task, cancelled)
    assert (task.status, last_event(task).type) == ("cancelled", "cancelled")


def test_a_process_without_such_functions_never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_reconcilers", {})

    async def scenario() -> None:
        database = DatabaseThread("reconciler")
        reconciler = Reconciler(database, Identity("host/redrive/1", 10, 60.0), lambda: BUILT_IN)
        async with asyncio.timeout(10):
            await reconciler.run()
            await reconciler.finished(5)
        await database.close()

    asyncio.run(scenario())
