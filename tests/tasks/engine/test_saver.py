"""The saver on a real database that refuses, waits, breaks off: every end is stored once, none holds up another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import connection

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.engine import saver as saver_module
from tasks.engine.database import DatabaseThread
from tasks.engine.runner import unstorable
from tasks.engine.saver import BATCH_CHARACTERS, Saver
from tasks.errors import BUILT_IN
from tasks.lifecycle import Claimed, End
from tasks.models import Attempt, ModelCall, Task
from tasks.states import Outcome, Reason
from tests.cluster import end_sessions
from tests.tasks.engine.bench import letters_refused, successes_refused
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)

DEADLINE = 15.0
Act = Callable[[Saver], Awaitable[None]]


@pytest.fixture
def claimed() -> tuple[int, list[Claimed]]:
    """A worker and five tasks that it has claimed."""
    worker = world.worker()
    return worker, world.claimed(world.prompt_kind(), worker, 5)


def save(worker: int, ends: list[End], act: Act | None = None) -> None:
    """Give the ends to a saver, do ``act`` meanwhile, and wait until nothing is left."""

    async def scenario() -> None:
        database = DatabaseThread("saver")
        saver = Saver(database, lambda end, error: unstorable(end, error, BUILT_IN))
        running = asyncio.create_task(saver.run())
        for end in ends:
            saver.put(worker, end)
        async with asyncio.timeout(DEADLINE):
            if act:
                await act(saver)
            await saver.drained()
        assert saver.attempts() == set()
        running.cancel()
        await database.close()

    asyncio.run(scenario())


async def until(check: Callable[[], Any]) -> None:
    while not check():
        await asyncio.sleep(0.02)


def statuses() -> list[str]:
    return sorted(Task.objects.values_list("status", flat=True))


def watch(second: psycopg.Connection) -> Callable[[str], int]:
    """How many tasks have a status, as anyone else sees it."""

    def count(status: str) -> int:
        (number,) = second.execute("SELECT count(*) FROM tasks_task WHERE status = %s", [status]).fetchone() or (0,)
        return int(number)

    return count


def test_a_value_the_database_will_not_take_becomes_a_letter_and_spares_the_others(
    claimed: tuple[int, list[Claimed]],
) -> None:
    worker, rows = claimed
    ends = [world.succeeded(row) for row in rows]
    ends[2] = replace(ends[2], result_text='{"nul": "\\u0000"}')
    save(worker, ends)
    letter = DeadLetter.objects.get()
    assert statuses() == ["dead", *["succeeded"] * 4]
    assert (letter.task_id, letter.reason, letter.attempts) == (rows[2].task_id, "unstorable", 1)
    assert "u0000" in letter.last_error


def test_a_trail_that_cannot_be_stored_is_dropped_with_its_value(claimed: tuple[int, list[Claimed]]) -> None:
    worker, rows = claimed
    end = world.succeeded(rows[0])
    call: dict[str, Any] = {"seq": 10**9, "messages": [], "answer": "fine", "started_at": None, "duration_ms": 1}
    save(worker, [replace(end, usage=replace(end.usage, calls=[call]))])
    assert DeadLetter.objects.get().reason == "unstorable"
    assert not ModelCall.objects.exists()


def test_an_error_that_nobody_foresaw_keeps_the_end_until_it_passes(
    claimed: tuple[int, list[Claimed]], second_connection: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    worker, rows = claimed
    count = watch(second_connection)

    async def act(saver: Saver) -> None:
        with successes_refused(second_connection, [rows[1].task_id]):
            # Stored a moment before the saver hears of it.
            await until(lambda: saver.attempts() == {rows[1].attempt_id})
            assert count("succeeded") == 4

    save(worker, [world.succeeded(row, '"kept"') for row in rows], act)
    assert statuses() == ["succeeded"] * 5
    assert world.stored(rows[1].task_id).result == "kept"
    assert not DeadLetter.objects.exists()
    assert "could not be stored; it is tried again" in caplog.text


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given up after a minute is given up at the second try, a moment later."""
    monkeypatch.setattr(saver_module, "GIVE_UP_SECONDS", 0.0)
    monkeypatch.setattr(saver_module, "ASIDE_SECONDS", 0.1)


@pytest.mark.usefixtures("impatient")
def test_an_unknown_error_that_strikes_one_end_alone_becomes_a_letter(
    claimed: tuple[int, list[Claimed]], second_connection: psycopg.Connection
) -> None:
    worker, rows = claimed
    count = watch(second_connection)

    async def act(saver: Saver) -> None:
        await until(lambda: count("running") == 4)
        saver.put(worker, world.succeeded(rows[2]))

    with successes_refused(second_connection, [rows[0].task_id]):
        # The other that is stored after the trouble began is what tells.
        save(worker, [world.succeeded(rows[0]), world.succeeded(rows[1])], act)
    letter = DeadLetter.objects.get()
    assert (letter.task_id, letter.reason) == (rows[0].task_id, "unstorable")
    assert "refused by the test" in letter.last_error


@pytest.mark.usefixtures("impatient")
def test_an_unknown_error_that_strikes_all_costs_nobody_a_result(
    claimed: tuple[int, list[Claimed]], second_connection: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """As when a deploy has gone wrong."""
    worker, rows = claimed

    async def act(saver: Saver) -> None:
        with successes_refused(second_connection, [row.task_id for row in rows]):
            await until(lambda: caplog.text.count("it is tried again") > 15)

    save(worker, [world.succeeded(row, '"paid for"') for row in rows], act)
    assert {task.result for task in Task.objects.all()} == {"paid for"}
    assert not DeadLetter.objects.exists()


def test_a_death_without_its_letter_waits_and_holds_up_nobody(
    claimed: tuple[int, list[Claimed]], second_connection: psycopg.Connection
) -> None:
    worker, rows = claimed
    count = watch(second_connection)
    dying = world.failed(rows[0], "die", reason=Reason.NOT_RETRYABLE)

    async def act(saver: Saver) -> None:
        with letters_refused(second_connection, rows[0].task_id):
            await until(lambda: count("succeeded") == 4)
            assert (count("running"), count("dead")) == (1, 0)

    save(worker, [dying, *(world.succeeded(row) for row in rows[1:])], act)
    assert statuses() == ["dead", *["succeeded"] * 4]
    assert DeadLetter.objects.get().task_id == rows[0].task_id


def test_a_row_that_somebody_holds_keeps_only_its_own_end_waiting(
    claimed: tuple[int, list[Claimed]], second_connection: psycopg.Connection
) -> None:
    worker, rows = claimed

    async def act(saver: Saver) -> None:
        with second_connection.transaction():
            second_connection.execute("SELECT 1 FROM tasks_task WHERE id = %s FOR UPDATE", [rows[3].task_id])
            await until(lambda: saver.attempts() == {rows[3].attempt_id})

    save(worker, [world.succeeded(row) for row in rows], act)
    assert statuses() == ["succeeded"] * 5
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"succeeded"}


def test_sessions_that_end_again_and_again_lose_and_repeat_nothing(
    claimed: tuple[int, list[Claimed]], second_connection: psycopg.Connection
) -> None:
    worker, rows = claimed
    count = watch(second_connection)
    spared = [second_connection.info.backend_pid, connection.connection.info.backend_pid]
    ended = 0

    async def act(saver: Saver) -> None:
        nonlocal ended
        for number, row in enumerate(rows):
            saver.put(worker, world.succeeded(row, f'"{number}"'))
            await asyncio.sleep(0.003 * number)
            ended += end_sessions(second_connection, spared)
        await until(lambda: count("succeeded") == 5)

    save(worker, [], act)
    assert ended > 0
    assert [world.stored(row.task_id).result for row in rows] == ["0", "1", "2", "3", "4"]
    assert all(
        [kind for kind, *_ in world.events(row.task_id)] == ["submitted", "claimed", "succeeded"] for row in rows
    )


def test_of_two_ends_of_an_attempt_the_first_counts(claimed: tuple[int, list[Claimed]]) -> None:
    worker, rows = claimed
    handed_back = End(task_id=rows[0].task_id, attempt_id=rows[0].attempt_id, outcome=Outcome.INTERRUPTED)
    save(worker, [handed_back, world.succeeded(rows[0])])
    assert (world.stored(rows[0].task_id).status, Attempt.objects.get(pk=rows[0].attempt_id).outcome) == (
        "ready", "interrupted",
    )  # fmt: skip
    lifecycle.finish(worker, [world.succeeded(rows[1]), replace(handed_back, task_id=rows[1].task_id)])
    assert Attempt.objects.get(pk=rows[1].attempt_id).outcome == "succeeded"


def test_late_ends_are_refused_and_said(claimed: tuple[int, list[Claimed]], caplog: pytest.LogCaptureFixture) -> None:
    worker, rows = claimed
    world.age("tasks_workerprocess", "lease_until", 60)
    lifecycle.mark_lost(leases_count=True)
    assert lifecycle.rescue() == 5
    with caplog.at_level(logging.WARNING):
        save(worker, [world.succeeded(row) for row in rows])
    assert statuses() == ["ready"] * 5
    assert f"attempts {sorted(row.attempt_id for row in rows)}" in caplog.text


def test_large_results_are_stored_in_several_batches(claimed: tuple[int, list[Claimed]]) -> None:
    worker, rows = claimed
    text = '"' + "x" * (BATCH_CHARACTERS // 3) + '"'
    save(worker, [world.succeeded(row, text) for row in rows])
    assert statuses() == ["succeeded"] * 5
    moments = Task.objects.values_list("finished_at", flat=True)
    assert len(set(moments)) == 3
