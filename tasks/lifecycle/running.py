"""What a worker process and its running tasks tell each other: progress one way, cancel marks the other."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from django.db import connection

from tasks.lifecycle.clean import clean

# Progress is not worth waiting for: a row that somebody else holds is told the next time.
EXCHANGE = """
WITH free AS MATERIALIZED (
    SELECT t.id, p.progress
    FROM jsonb_to_recordset(%(progress)s::jsonb) AS p(id uuid, attempt_id bigint, progress jsonb)
    JOIN tasks_task t ON t.id = p.id
    -- As in ``success``: no partial index may answer.
    WHERE t.status || '' = 'running' AND t.attempt_id = p.attempt_id
    ORDER BY t.id FOR NO KEY UPDATE OF t SKIP LOCKED
), told AS (
    UPDATE tasks_task t SET progress = free.progress FROM free WHERE t.id = free.id
)
SELECT attempt_id FROM tasks_task
WHERE worker_id = %(worker)s AND status = 'running' AND cancel_requested_at IS NOT NULL
"""
GOES_ON = """
SELECT cancel_requested_at IS NULL FROM tasks_task
WHERE id = %s AND attempt_id = %s AND status = 'running' FOR NO KEY UPDATE
"""
HELD_BY_WORKER = "SELECT id, attempt_id FROM tasks_task WHERE worker_id = %s AND status = 'running'"


def exchange(worker_id: int, progress: Mapping[tuple[UUID, int], dict[str, Any]]) -> set[int]:
    """Store the progress of running attempts, keyed by (task, attempt); the attempts that people asked to cancel."""
    rows = [
        {"id": str(task_id), "attempt_id": attempt_id, "progress": clean(value)}
        for (task_id, attempt_id), value in sorted(progress.items())
    ]
    with connection.cursor() as cursor:
        cursor.execute(EXCHANGE, {"progress": json.dumps(rows), "worker": worker_id})
        return {row[0] for row in cursor.fetchall()}


def strays(worker_id: int, known: Collection[int]) -> list[tuple[UUID, int]]:
    """(task, attempt) that the database says this worker runs and that it does not know.

    A claim whose commit was never confirmed leaves such: nobody runs them and, as the lease goes on, none rescues them.
    """
    with connection.cursor() as cursor:
        cursor.execute(HELD_BY_WORKER, [worker_id])
        return [(task_id, attempt_id) for task_id, attempt_id in cursor.fetchall() if attempt_id not in known]


def goes_on(task_id: UUID, attempt_id: int) -> bool:
    """Whether the task is still this attempt's, and nobody has asked to cancel it.

    Must run in the transaction of what follows from it: until then nobody cancels the task or takes it over.
    """
    with connection.cursor() as cursor:
        cursor.execute(GOES_ON, [task_id, attempt_id])
        row = cursor.fetchone()
    return bool(row and row[0])
