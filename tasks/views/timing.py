"""How long tasks waited and ran, for a page of them at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from tasks.models import Attempt, Task, TaskEvent
from tasks.states import Status


@dataclass(frozen=True)
class Timing:
    """Seconds, None where there is nothing to say.

    ``waited``: in this cycle, from being ready for the first time to the first start (or to the end, or to now).
    ``ran``: the last attempt, to its end or to now.
    """

    waited: float | None = None
    ran: float | None = None


def timings(tasks: Sequence[Task]) -> dict[UUID, Timing]:
    """The timings of these tasks, in two queries."""
    ids = [task.pk for task in tasks]
    now = timezone.now()
    ready = dict(
        TaskEvent.objects.filter(task__in=ids, to_status=Status.READY, cycle=F("task__cycle"))
        .order_by("task_id", "seq")
        .distinct("task_id")
        .values_list("task_id", "at")
    )
    attempts = {
        task_id: (started, finished)
        for task_id, started, finished in Attempt.objects.filter(task__in=ids)
        .order_by("task_id", "-id")
        .distinct("task_id")
        .values_list("task_id", "started_at", "finished_at")
    }
    return {task.pk: Timing(_waited(task, ready.get(task.pk), now), _ran(attempts.get(task.pk), now)) for task in tasks}


def _waited(task: Task, ready_at: datetime | None, now: datetime) -> float | None:
    if ready_at is None:
        return None
    until = task.cycle_started_at or task.finished_at or now
    return max(0.0, (until - ready_at).total_seconds())


def _ran(attempt: tuple[datetime, datetime | None] | None, now: datetime) -> float | None:
    if attempt is None:
        return None
    started, finished = attempt
    return max(0.0, ((finished or now) - started).total_seconds())
