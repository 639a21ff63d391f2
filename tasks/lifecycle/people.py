"""What people do to tasks: cancel, reprocess, run now, another priority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from tasks.lifecycle.announce import announce_ready
from tasks.lifecycle.moves import Locked, Move, apply, lock_ids, note
from tasks.states import FINAL, PENDING, Status

#: What waits for a time.
DUE = frozenset({Status.SCHEDULED, Status.RETRYABLE})

REPROCESS = """
WITH picked AS MATERIALIZED (
    SELECT t.id, k.name, k.provider_id FROM tasks_task t JOIN tasks_kind k ON k.name = t.kind_id
    WHERE t.id = ANY(%(ids)s) AND t.status = 'dead' ORDER BY t.id FOR NO KEY UPDATE OF t
), moved AS (
    UPDATE tasks_task t SET
        status = 'ready', status_at = now(), cycle = t.cycle + 1, failures = 0, snoozes = 0, rescues = 0,
        cycle_started_at = NULL, run_after = now(), finished_at = NULL, reason = '', error_code = '', expires_at = NULL,
        event_seq = t.event_seq + 1, progress = NULL,
        lane_id = (SELECT l.id FROM tasks_lane l
                   WHERE l.kind_id = picked.name AND l.provider_id IS NOT DISTINCT FROM picked.provider_id)
    FROM picked WHERE t.id = picked.id AND t.status = 'dead'
    RETURNING t.id, t.event_seq, t.cycle
), noted AS (
    INSERT INTO tasks_taskevent (task_id, seq, at, type, from_status, to_status, cycle, actor, data)
    SELECT id, event_seq, now(), 'reprocessed', 'dead', 'ready', cycle, %(actor)s, '{}' FROM moved
)
SELECT id FROM moved
"""

REQUEST_CANCEL = """
UPDATE tasks_task SET cancel_requested_at = now()
WHERE id = ANY(%s) AND status = 'running' AND cancel_requested_at IS NULL RETURNING id
"""


def reprocess(task_ids: Sequence[UUID], *, actor: str) -> set[UUID]:
    """dead → ready in the next cycle, with a fresh budget and deadline; an old ``expires_at`` is dropped.

    The ids of those that moved: a task that is not dead (any more) is left alone.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(REPROCESS, {"ids": list(task_ids), "actor": actor})
            won = {row[0] for row in cursor.fetchall()}
        if won:
            announce_ready()
    return won


def cancel(task_ids: Sequence[UUID], *, actor: str) -> set[UUID]:
    """Cancel pending tasks at once; ask the workers of running ones to abort them.

    The ids for which this had an effect: ended tasks, and running ones already asked for, are left alone.
    """
    with transaction.atomic():
        rows = lock_ids(task_ids)
        done = apply([_cancelled(row, actor) for row in rows.values() if row.status in PENDING])
        asked = _ask([row.id for row in rows.values() if row.status == Status.RUNNING])
        note([(task_id, "cancel_requested", rows[task_id].attempt_id, actor, {}) for task_id in asked])
    return done | asked


def run_now(task_ids: Sequence[UUID], *, actor: str) -> set[UUID]:
    """scheduled and retryable → ready, without waiting for their time; the ids of those that moved.

    Budget, deadline and snoozes stay as they are: it is the wait alone that ends.
    """
    with transaction.atomic():
        rows = lock_ids(task_ids)
        return apply([_due(row, actor) for row in rows.values() if row.status in DUE])


PRIORITY = """
UPDATE tasks_task t SET priority = %(priority)s FROM (
    SELECT id, priority FROM tasks_task WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE
) AS was
WHERE t.id = was.id AND was.priority <> %(priority)s AND t.status <> ALL(%(over)s) RETURNING t.id, was.priority
"""


def set_priority(task_ids: Sequence[UUID], priority: int, *, actor: str) -> set[UUID]:
    """Give tasks that have not ended another priority, from -100 to 100; the ids of those that got it.

    It counts at the next claim: a running attempt goes on as it is.
    """
    parameters: dict[str, Any] = {"ids": list(task_ids), "priority": priority, "over": sorted(FINAL)}
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(PRIORITY, parameters)
            changed = dict(cursor.fetchall())
        notes = [(task_id, "priority", None, actor, {"from": was, "to": priority}) for task_id, was in changed.items()]
        note(notes)
    return set(changed)


def _due(row: Locked, actor: str) -> Move:
    return Move(
        id=row.id, type="run_now", from_status=row.status, to_status=Status.READY, actor=actor, delay_seconds=0.0
    )


def _cancelled(row: Locked, actor: str) -> Move:
    return Move(id=row.id, type="cancelled", from_status=row.status, to_status=Status.CANCELLED, actor=actor)


def _ask(running: list[UUID]) -> set[UUID]:
    if not running:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(REQUEST_CANCEL, [running])
        return {row[0] for row in cursor.fetchall()}
