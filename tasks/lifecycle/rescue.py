"""running → unknown, and on: take back the tasks of worker processes whose lease ran out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from django.db import connection, transaction

from tasks.errors import Failure, fingerprint
from tasks.lifecycle import suspects
from tasks.lifecycle.moves import Locked, Move, apply, lock, piecewise
from tasks.lifecycle.unknown import WORKER_LOST, settle_rows
from tasks.states import Status

BATCH = 500
LOST_ERROR = "The worker process that ran this vanished; its answer, if there was one, was not stored."

# The worker row is marked first: from then on its heartbeat and its claims are refused. A death that its own sentinel
# saw needs no waiting; a silent one needs a lease that ran out while this cluster was in unbroken contact.
# A row that is locked is beating just now, or is looked at again in half a second.
MARK_LOST = """
WITH gone AS MATERIALIZED (
    SELECT id FROM tasks_workerprocess
    WHERE lost_at IS NULL AND stopped_at IS NULL AND (exit_seen_at IS NOT NULL OR (%s AND lease_until < now()))
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tasks_workerprocess w SET lost_at = now() FROM gone WHERE w.id = gone.id RETURNING w.id
"""
ORPHANS = """t.status = 'running' AND EXISTS (
    SELECT 1 FROM tasks_workerprocess w
    WHERE w.id = t.worker_id AND (w.lost_at IS NOT NULL OR w.stopped_at IS NOT NULL))"""
HAS_ORPHANS = f"SELECT EXISTS (SELECT 1 FROM tasks_task t WHERE {ORPHANS})"  # noqa: S608 - our own words
SEEN_DEATHS = "SELECT id FROM tasks_workerprocess WHERE id = ANY(%s) AND exit_seen_at IS NOT NULL"
LOSE_ATTEMPTS = """
UPDATE tasks_attempt a SET outcome = 'lost', finished_at = now(), error_code = e.error_code,
    fingerprint = e.fingerprint, last_error = e.last_error, failure = e.failure
FROM jsonb_to_recordset(%s::jsonb) AS e(id bigint, error_code text, fingerprint text, last_error text, failure jsonb)
WHERE a.id = e.id AND a.outcome = 'running'
"""


def mark_lost(*, leases_count: bool) -> list[int]:
    """Mark worker processes that are gone; their ids.

    ``leases_count``: whether a lease that ran out is proof, that is, whether this cluster has had the database for at
    least one lease without a break. Deaths that a sentinel saw are proof always.
    """
    with connection.cursor() as cursor:
        cursor.execute(MARK_LOST, [leases_count])
        return [row[0] for row in cursor.fetchall()]


def rescue(known: Sequence[str] = ()) -> int:
    """Take back one batch of running tasks whose worker is marked lost or stopped; how many.

    ``known``: the handlers that this process could ask what became of the work, although it is no worker.
    """
    with transaction.atomic():
        orphans = lock(ORPHANS, [], limit=BATCH, skip_locked=True)
        if not orphans:
            return 0
        seen = _seen_deaths({row.worker_id for row in orphans if row.worker_id})
        return piecewise(orphans, lambda rows: _take_back(rows, seen, known))


def has_orphans() -> bool:
    """Whether tasks are left that ``rescue`` has to take back, be it that others hold their rows at the moment."""
    with connection.cursor() as cursor:
        cursor.execute(HAS_ORPHANS)
        return bool(cursor.fetchone()[0])


def _take_back(orphans: Sequence[Locked], seen: set[int], known: Sequence[str]) -> int:
    _lose_attempts(orphans)
    condemned = suspects.condemned(row for row in orphans if row.worker_id in seen)
    apply([_to_unknown(row, row.worker_id in seen, row.id in condemned) for row in orphans])
    settle_rows(orphans, known)
    return len(orphans)


def _seen_deaths(workers: set[int]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(SEEN_DEATHS, [list(workers)])
        return {row[0] for row in cursor.fetchall()}


def _to_unknown(row: Locked, death_was_seen: bool, is_condemned: bool) -> Move:
    return Move(
        id=row.id,
        type="rescued",
        from_status=Status.RUNNING,
        to_status=Status.UNKNOWN,
        attempt_id=row.attempt_id,
        error_code=WORKER_LOST,
        ask_seconds=0.0,
        rescues=int(death_was_seen),
        data={"worker": row.worker_id, "death_seen": death_was_seen, **({"condemned": True} if is_condemned else {})},
    )


def _lose_attempts(orphans: Sequence[Locked]) -> None:
    rows = [{"id": row.attempt_id, **_lost_failure()} for row in orphans]
    with connection.cursor() as cursor:
        cursor.execute(LOSE_ATTEMPTS, [json.dumps(rows)])


@cache
def _lost_failure() -> dict[str, Any]:
    failure = Failure(exception="redrive.WorkerLost", message=LOST_ERROR)
    mark = fingerprint(failure)
    return {
        "error_code": WORKER_LOST,
        "fingerprint": mark.digest,
        "last_error": LOST_ERROR,
        "failure": {"exception": failure.exception, "message": LOST_ERROR, "title": mark.title},
    }
