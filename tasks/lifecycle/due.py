"""Moves that time makes: due tasks become ready, expired ones die."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection, transaction

from tasks.lifecycle.announce import announce_ready
from tasks.lifecycle.moves import Locked, Move, apply, lock, piecewise
from tasks.states import Reason, Status

BATCH = 1_000

DUE = """
WITH due AS MATERIALIZED (
    SELECT id, status FROM tasks_task
    WHERE status IN ('scheduled', 'retryable') AND run_after <= now()
    ORDER BY run_after LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
), moved AS (
    UPDATE tasks_task t SET status = 'ready', status_at = now(), event_seq = t.event_seq + 1
    FROM due WHERE t.id = due.id AND t.status = due.status
    RETURNING t.id, t.event_seq, t.cycle, due.status AS from_status
), noted AS (
    INSERT INTO tasks_taskevent (task_id, seq, at, type, from_status, to_status, cycle, actor, data)
    SELECT id, event_seq, now(), 'due', from_status, 'ready', cycle, '', '{}' FROM moved
)
SELECT count(*) FROM moved
"""


def make_due() -> int:
    """scheduled and retryable → ready where the time has come, at most one batch; how many moved."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(DUE, [BATCH])
            (count,) = cursor.fetchone()
        if count:
            announce_ready()
    return int(count)


# The statuses are named as the partial index names them, so that the planner finds it. An unknown task has started, and
# may have done its work: it is decided as unknown, and expires if it comes to wait again.
EXPIRED = """t.expires_at <= now() AND NOT t.status IN ('cancelled', 'dead', 'skipped', 'succeeded', 'running')
    AND t.status <> 'unknown'"""
# Lane by lane through the partial index, as the claim does: a join lets the planner read the whole task table.
STRAYS = """
WITH left_lane AS MATERIALIZED (
    SELECT old_lane.id AS old_id, new_lane.id AS new_id FROM tasks_lane old_lane
    JOIN tasks_kind k ON k.name = old_lane.kind_id
    JOIN tasks_lane new_lane ON new_lane.kind_id = k.name AND new_lane.provider_id IS NOT DISTINCT FROM k.provider_id
    WHERE old_lane.id <> new_lane.id
)
SELECT next.id, left_lane.new_id FROM left_lane CROSS JOIN LATERAL (
    SELECT t.id FROM tasks_task t
    WHERE t.lane_id = left_lane.old_id AND t.status = 'ready' AND t.parked_at IS NULL
    ORDER BY t.priority DESC, t.run_after, t.id
    LIMIT %(batch)s FOR NO KEY UPDATE SKIP LOCKED
) AS next LIMIT %(batch)s
"""
REALIGN = """
UPDATE tasks_task t SET lane_id = stray.lane_id
FROM unnest(%s::uuid[], %s::bigint[]) AS stray(id, lane_id) WHERE t.id = stray.id
"""


def realign() -> int:
    """Move ready tasks out of lanes that their kind has left, at most one batch; how many.

    Until then nobody claims them: a kind's new model may be unknown to its old provider.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(STRAYS, {"batch": BATCH})
        strays = cursor.fetchall()
        if strays:
            cursor.execute(REALIGN, [list(ids) for ids in zip(*strays, strict=True)])
            announce_ready()
    return len(strays)


def expire() -> int:
    """scheduled, ready and retryable → dead (``expired``) past ``expires_at``, at most one batch."""
    with transaction.atomic():
        rows = lock(EXPIRED, [], limit=BATCH, skip_locked=True)
        return piecewise(rows, _expire) if rows else 0


def _expire(rows: Sequence[Locked]) -> int:
    return len(apply([_expired(row) for row in rows]))


def _expired(row: Locked) -> Move:
    return Move(
        id=row.id,
        type="died",
        from_status=row.status,
        to_status=Status.DEAD,
        reason=Reason.EXPIRED,
        data={"reason": str(Reason.EXPIRED)},
    )
