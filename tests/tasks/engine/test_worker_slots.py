"""An attempt in its slot: stopped before it began, or ended in a way that nobody can read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.engine import registry
from tasks.engine.context import Context
from tasks.engine.database import DatabaseThread
from tasks.engine.others import OtherProviders
from tasks.engine.runner import Abort, Runner, unstorable
from tasks.engine.saver import Saver
from tasks.engine.slots import Slots
from tasks.errors import BUILT_IN, Catalogue
from tasks.llm.provider import Clients
from tasks.models import Attempt, Kind
from tests.tasks.engine import bench
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)

Act = Callable[[Slots], Any]


@pytest.fixture
def ran() -> list[Any]:
    """The payloads that the handler was called with."""
    return []


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch, ran: list[Any]) -> Kind:
    """A kind in code that is not safe to rerun."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))

    async def work(context: Context) -> str:
        ran.append(context.payload)
        raise LookupError("no such ticket")

    registry.handler("on.the.bench")(work)
    return Kind.objects.create(name="bench", handler="on.the.bench", safe_to_rerun=False)


def in_slots(kind: Kind, act: Act, catalogue: Catalogue = BUILT_IN) -> Attempt:
    """Start one attempt, do ``act`` before it can take its first step, and store its end."""
    worker, (job,) = bench.claim(kind, ["ticket"])

    async def scenario() -> None:
        database, freed = DatabaseThread("slots"), asyncio.Event()
        saver = Saver(database, lambda end, error: unstorable(end, error, BUILT_IN))
        saving = asyncio.create_task(saver.run())
        with ThreadPoolExecutor(1) as threads:
            runner = Runner(Clients(), threads, catalogue, lambda worker_id: True, OtherProviders(database))
            slots = Slots(1, runner, saver, freed.set)
            slots.start(job, worker)
            assert (slots.free, slots.attempts()) == (0, {job.claimed.attempt_id})
            act(slots)
            async with asyncio.timeout(10):
                await freed.wait()
                await saver.drained()
            assert (slots.free, len(slots)) == (1, 0)
        saving.cancel()
        await database.close()

    asyncio.run(scenario())
    return Attempt.objects.select_related("task").get(pk=job.claimed.attempt_id)


@pytest.mark.parametrize(
    ("reasons", "outcome", "status"),
    [
        ([Abort.DRAINED], "interrupted", "ready"),
        ([Abort.LEASE_LOST], "interrupted", "ready"),
        ([Abort.CANCELLED], "cancelled", "cancelled"),
        ([Abort.CANCELLED, Abort.DRAINED], "cancelled", "cancelled"),
    ],
)
def test_an_attempt_stopped_before_its_first_step_has_not_started(
    kind: Kind, ran: list[Any], reasons: list[Abort], outcome: str, status: str
) -> None:
    done = in_slots(kind, lambda slots: [slots.stop(why) for why in reasons])
    assert (done.outcome, done.counted, done.task.status) == (outcome, False, status)
    assert ran == []


def test_a_failure_that_cannot_be_read_is_a_letter_all_the_same(kind: Kind, ran: list[Any]) -> None:
    """A catalogue without codes stands for any bug of ours on the way from the error to the decision."""
    done = in_slots(kind, lambda slots: None, Catalogue({}, ()))
    letter = DeadLetter.objects.get()
    assert (done.outcome, done.task.status, letter.reason, letter.attempts) == ("failed", "dead", "unstorable", 1)
    assert "KeyError" in letter.last_error
    assert ran == ["ticket"]


def test_an_attempt_that_is_cut_off_is_handed_back_once(kind: Kind, ran: list[Any]) -> None:
    """Its own end, should it still come, changes nothing."""
    done = in_slots(kind, lambda slots: slots.cut_off())
    assert (done.outcome, done.counted, done.task.status) == ("interrupted", False, "ready")
    assert [kind for kind, *_ in world.events(done.task_id)] == ["submitted", "claimed", "interrupted"]


def test_a_save_frozen_on_its_way_lets_go_of_its_tasks_within_the_lease(kind: Kind, settings: Settings) -> None:
    """The server ends the session of a process that sleeps in the middle of a save; nobody else could free the rows.

    One that stores more than the end, since the end alone is one statement.
    """
    settings.REDRIVE_LEASE_SECONDS = 7.0
    worker, (job,) = bench.claim(kind, ["ticket"])
    usage = lifecycle.Usage(calls=[world.a_call()])
    names = {"task_id": job.claimed.task_id, "attempt_id": job.claimed.attempt_id}
    end = lifecycle.End(**names, outcome="succeeded", usage=usage)
    with transaction.atomic(), connection.cursor() as cursor:
        lifecycle.finish(worker, [end])
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("7s",)
