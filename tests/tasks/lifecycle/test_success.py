"""The one statement of successes: what it clears, what it keeps, and that it waits for nobody."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest
from django.db import connection

from tasks import lifecycle
from tasks.lifecycle import Usage
from tasks.models import Attempt
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
