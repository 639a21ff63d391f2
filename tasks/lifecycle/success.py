"""running → succeeded, the way that most attempts end: task, attempt and event of a whole batch in one statement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from tasks.lifecycle import prepared
from tasks.lifecycle.end import End
from tasks.models.ranges import LARGEST_COST
from tasks.states import Outcome

# The rows are locked first: an UPDATE alone would wait for a row that somebody else holds.
# Status and outcome are asked in a form that no partial index answers: by old statistics those hold one row, and each
# would be compared with all that are wanted.
SUCCEED = """
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest(%(tasks)s::uuid[], %(attempts)s::bigint[], %(results)s::text[], %(repairs)s::smallint[],
        %(mended)s::text[], %(input_tokens)s::int[], %(output_tokens)s::int[], %(costs)s::numeric[])
        AS w(id, attempt_id, result, repairs, mended, input_tokens, output_tokens, cost)
), mine AS MATERIALIZED (
    SELECT w.* FROM wanted w JOIN tasks_task t ON t.id = w.id
    WHERE t.status || '' = 'running' AND t.attempt_id = w.attempt_id AND t.worker_id = %(worker)s
      AND t.cycle <= %(last_cycle)s::int
    ORDER BY t.id FOR NO KEY UPDATE OF t SKIP LOCKED
), ended AS (
    UPDATE tasks_attempt a SET
        outcome = 'succeeded', finished_at = now(), repairs = m.repairs, mended = m.mended::jsonb,
        input_tokens = m.input_tokens, output_tokens = m.output_tokens, cost = m.cost
    FROM mine m WHERE a.id = m.attempt_id AND a.outcome || '' = 'running'
), moved AS (
    UPDATE tasks_task t SET
        status = 'succeeded', status_at = now(), finished_at = now(), worker_id = NULL, attempt_id = NULL,
        event_seq = t.event_seq + 1, error_code = '', result = m.result::jsonb, snoozes = 0,
        input_tokens = t.input_tokens + COALESCE(m.input_tokens, 0),
        output_tokens = t.output_tokens + COALESCE(m.output_tokens, 0),
        cost = LEAST(t.cost + COALESCE(m.cost, 0), %(largest)s), cancel_requested_at = NULL
    FROM mine m WHERE t.id = m.id AND t.status || '' = 'running' AND t.attempt_id = m.attempt_id
    RETURNING t.id, t.event_seq, t.cycle, m.attempt_id
), noted AS (
    INSERT INTO tasks_taskevent (task_id, seq, at, type, from_status, to_status, cycle, attempt_id, actor, data)
    SELECT id, event_seq, now(), 'succeeded', 'running', 'succeeded', cycle, attempt_id, '', '{}' FROM moved
)
SELECT attempt_id, id, cycle FROM moved
"""
#: The largest that the column holds.
ANY_CYCLE = 2**31 - 1


def store_successes(worker_id: int, ends: Sequence[End], last_cycle: int = ANY_CYCLE) -> list[tuple[int, UUID, int]]:
    """Record those of these ends that are successes of attempts which this worker still has: (attempt, task, cycle).

    What is missing from the answer is for ``finish`` to look at: late, stored before, of a later cycle than
    ``last_cycle``, or its row is held by somebody.
    """
    good = [end for end in ends if end.outcome == Outcome.SUCCEEDED]
    if not good:
        return []
    params = {"worker": worker_id, "largest": LARGEST_COST, "last_cycle": str(last_cycle), **_columns(good)}
    return [(attempt_id, task_id, cycle) for attempt_id, task_id, cycle in prepared.rows(SUCCEED, params)]


def store_plain(worker_id: int, ends: Sequence[End]) -> list[int]:
    """The same for those of the first cycle that leave nothing else to store, each whole in one statement: attempts.

    Outside of a transaction it is one round trip, and a process that is frozen meanwhile keeps nothing locked. A later
    cycle has a letter to close, in the same transaction.
    """
    plain = [end for end in ends if not (end.usage.calls or end.log)]
    return [attempt_id for attempt_id, _, _ in store_successes(worker_id, plain, last_cycle=1)]


def _columns(ends: Sequence[End]) -> dict[str, Any]:
    usages = [end.usage for end in ends]
    return {
        "tasks": _array(end.task_id for end in ends),
        "attempts": _array(end.attempt_id for end in ends),
        "results": [end.result_text for end in ends],
        "repairs": _array(usage.repairs for usage in usages),
        "mended": [json.dumps(usage.mended) if usage.mended else "[]" for usage in usages],
        "input_tokens": _array(usage.input_tokens for usage in usages),
        "output_tokens": _array(usage.output_tokens for usage in usages),
        "costs": _array(usage.cost for usage in usages),
    }


def _array(values: Iterable[object]) -> str:
    """An array of ids or numbers as PostgreSQL reads it: psycopg looks at each for what would need quotes."""
    return f"{{{','.join(['NULL' if value is None else str(value) for value in values])}}}"
