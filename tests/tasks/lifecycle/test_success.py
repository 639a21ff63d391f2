"""The one statement of successes: what it clears, what it keeps, and that it waits for nobody."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, connection

from tasks import lifecycle
from tasks.lifecycle import Usage
from tasks.lifecycle.success import SUCCEED
from tasks.models import Attempt, Task, TaskEvent
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_success_clears_what_went_wrong_before_it() -> None:
    worker, kind = world.worker(), world.prompt_kind()
    (row,) = world.claimed(kind, worker)
    lifecycle.finish(worker, [world.failed(row, "snooze", delay_seconds=0)])
    before = world.stored(row.task_id)
    assert (before.status, before.snoozes, before.error_code) == ("retryable", 1, "AI_UPSTREAM_5XX")
    world.age("tasks_task", "run_after", 60)
    assert lifecycle.make_due() == 1
    (again,) = lifecycle.claim(worker, 1, [])
    lifecycle.cancel([row.task_id], actor="ana")
    assert world.stored(row.task_id).cancel_requested_at is not None
    end = replace(world.succeeded(again), usage=Usage(mended=['a "fence"', "a comma,"]))
    assert lifecycle.finish(worker, [end]).won == {again.attempt_id}
    task = world.stored(row.task_id)
    assert (task.status, task.snoozes, task.error_code, task.cancel_requested_at) == ("succeeded", 0, "", None)
    assert Attempt.objects.get(pk=again.attempt_id).mended == ['a "fence"', "a comma,"]


def test_a_row_that_somebody_holds_is_not_waited_for(second_connection: psycopg.Connection) -> None:
    worker = world.worker()
    held, free = world.claimed(world.prompt_kind(), worker, 2)
    ends = [world.succeeded(held), world.succeeded(free)]
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '500ms'")  # waiting would be an error
    with second_connection.transaction():
        second_connection.execute("SELECT 1 FROM tasks_task WHERE id = %s FOR UPDATE", [held.task_id])
        saved = lifecycle.finish(worker, ends)
    assert (saved.won, saved.busy) == ({free.attempt_id}, {held.attempt_id})
    assert lifecycle.finish(worker, ends[:1]).won == {held.attempt_id}
    connection.close()


@pytest.mark.django_db
def test_the_end_of_an_attempt_leaves_the_indexes_alone() -> None:
    """PostgreSQL calls such an update heap-only."""
    worker = world.worker()
    rows = world.claimed(world.prompt_kind(), worker, 40)
    updated, in_place = _updates_of_attempts()
    assert len(lifecycle.finish(worker, [world.succeeded(row) for row in rows]).won) == 40
    assert _updates_of_attempts() == (updated + 40, in_place + 40)


def _updates_of_attempts() -> tuple[int, int]:
    """By this session, since it last told the server's statistics: all, and those that left the indexes alone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'tasks_attempt'")
        return cursor.fetchone()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("cycle", "usage", "alone"),
    [(1, Usage(), True), (2, Usage(), False), (1, Usage(calls=[world.a_call()]), False)],
)
def test_only_what_leaves_nothing_else_to_store_is_stored_by_itself(cycle: int, usage: Usage, alone: bool) -> None:
    """What belongs together is in one transaction: the end and its trail, the end and the letter that it closes."""
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    Task.objects.update(cycle=cycle)
    seen: list[bool] = []

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        won = execute(sql, params, many, context)
        if sql == SUCCEED and connection.connection and context["cursor"].rowcount:
            seen.append(not connection.in_atomic_block)
        return won

    with connection.execute_wrapper(look):
        assert lifecycle.finish(worker, [replace(world.succeeded(row), usage=usage)]).won == {row.attempt_id}
    assert seen == [alone]


def test_no_task_succeeds_twice() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lifecycle.finish(worker, [world.succeeded(row)])
    again = {"task_id": row.task_id, "seq": 9, "type": "succeeded", "to_status": "succeeded", "cycle": 1}
    with pytest.raises(IntegrityError, match="task_success_once"):
        TaskEvent.objects.create(**again)
