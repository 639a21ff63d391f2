"""Moves that time and people make, and what the database refuses whoever asks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.models import Attempt, Task, TaskEvent
from tasks.states import Reason, Status
from tests.tasks.lifecycle import world


@pytest.mark.django_db
def test_due_tasks_become_ready() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lifecycle.finish(worker, [world.failed(row, "retry", delay_seconds=30)])
    later = lifecycle.submit("ticket.triage", {}, run_after=timezone.now() + timedelta(seconds=30))
    assert lifecycle.make_due() == 0
    world.age("tasks_task", "run_after", 31)
    assert lifecycle.make_due() == 2
    assert {world.stored(row.task_id).status, world.stored(later.id).status} == {"ready"}
    assert world.events(later.id)[-1] == ("due", "scheduled", "ready")


@pytest.mark.django_db
def test_expired_tasks_die_without_an_attempt() -> None:
    world.prompt_kind()
    task = lifecycle.submit("ticket.triage", {}, expires_at=timezone.now() + timedelta(seconds=5))
    assert lifecycle.expire() == 0
    world.age("tasks_task", "expires_at", 6)
    assert lifecycle.claim(world.worker(), 5, []) == []
    assert lifecycle.expire() == 1
    assert (world.stored(task.id).reason, DeadLetter.objects.get().reason) == ("expired", "expired")
    assert DeadLetter.objects.get().last_error != ""


@pytest.mark.django_db
def test_reprocess_gives_a_fresh_cycle_and_only_once() -> None:
    kind, worker = world.prompt_kind(), world.worker()
    (row,) = world.claimed(kind, worker)
    lifecycle.finish(worker, [world.failed(row, "die", reason=Reason.NOT_RETRYABLE)])
    assert lifecycle.reprocess([row.task_id], actor="ana") == {row.task_id}
    assert lifecycle.reprocess([row.task_id], actor="ben") == set()
    task = world.stored(row.task_id)
    assert (task.status, task.cycle, task.failures, task.reason, task.cycle_started_at) == ("ready", 2, 0, "", None)
    event = TaskEvent.objects.filter(task=task).latest("seq")
    assert (event.type, event.actor, event.cycle) == ("reprocessed", "ana", 2)
    (again,) = lifecycle.claim(worker, 1, [])
    assert (again.cycle, again.failures) == (2, 0)


@pytest.mark.django_db
@pytest.mark.parametrize("status", [s for s in Status if s is not Status.DEAD])
def test_reprocess_leaves_all_but_the_dead_alone(status: Status) -> None:
    world.prompt_kind()
    task = lifecycle.submit("ticket.triage", {})
    force(task, status)
    assert lifecycle.reprocess([task.id], actor="ana") == set()
    assert world.stored(task.id).status == status


@pytest.mark.django_db
@pytest.mark.parametrize("status", list(Status))
def test_cancel_ends_what_waits_and_asks_what_runs(status: Status) -> None:
    world.prompt_kind()
    task = lifecycle.submit("ticket.triage", {})
    force(task, status)
    done = lifecycle.cancel([task.id], actor="ana")
    pending = {Status.SCHEDULED, Status.READY, Status.RETRYABLE, Status.WAITING, Status.UNKNOWN}
    assert done == ({task.id} if status in pending | {Status.RUNNING} else set())
    stored = world.stored(task.id)
    assert stored.status == ("cancelled" if status in pending else status)
    assert (stored.cancel_requested_at is not None) == (status == Status.RUNNING)


def force(task: Task, status: Status) -> None:
    """Put a row into a status by SQL, as no move leads there from ready in one step."""
    worker = attempt = None
    if status == Status.RUNNING:
        (row,) = lifecycle.claim(world.worker(), 1, [])
        worker, attempt = world.stored(row.task_id).worker_id, row.attempt_id
    ended = status in (Status.SUCCEEDED, Status.DEAD, Status.CANCELLED, Status.SKIPPED)
    Task.objects.filter(pk=task.pk).update(
        status=status,
        worker_id=worker,
        attempt_id=attempt,
        finished_at=timezone.now() if ended else None,
        reason="not_retryable" if status == Status.DEAD else "",
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        "status = 'running'",
        "status = 'succeeded'",
        "status = 'dead', finished_at = now()",
        "status = 'sleeping'",
        "result = '1'",
        "reason = 'expired'",
        "finished_at = now()",
        "priority = 101",
        "cycle = 0",
    ],
)
def test_the_database_refuses_impossible_rows(change: str) -> None:
    world.prompt_kind()
    lifecycle.submit("ticket.triage", {})
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE tasks_task SET {change}")  # noqa: S608


@pytest.mark.django_db
@pytest.mark.parametrize("end", [Status.SUCCEEDED, Status.CANCELLED, Status.DEAD])
def test_nothing_leaves_an_end(end: Status) -> None:
    world.prompt_kind()
    force(lifecycle.submit("ticket.triage", {}), end)
    with pytest.raises(DatabaseError, match="cannot go from"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE tasks_task SET status = 'ready', finished_at = NULL, reason = ''")


@pytest.mark.django_db
def test_history_is_never_rewritten() -> None:
    worker = world.worker()
    kind = world.prompt_kind()
    (row,) = world.claimed(kind, worker)
    lifecycle.finish(worker, [world.succeeded(row)])
    for model in (TaskEvent, Attempt, type(kind.prompt_version)):
        field = {"TaskEvent": "actor", "Attempt": "last_error", "PromptVersion": "prompt"}[model.__name__]
        with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
            model.objects.update(**{field: "forged"})
