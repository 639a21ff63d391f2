"""Writes the letters inside the lifecycle's transactions: a death whose letter cannot be written did not happen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from deadletters.words import stored_reasons
from tasks.models.ids import uuid7
from tasks.states import LetterState, Status

#: What becomes of a reprocessed letter when its task ends without dying.
ENDS = {
    Status.SUCCEEDED: LetterState.RECOVERED,
    Status.CANCELLED: LetterState.CANCELLED,
    Status.SKIPPED: LetterState.CANCELLED,
}

# A task has at most one current letter (constraint letter_one_current_per_task). It is a reprocessed one, unless code
# sent the task again without its letter; that must not make its next death impossible.
SETTLE = """
WITH current AS MATERIALIZED (
    SELECT l.id, l.state, e.state AS to_state
    FROM unnest(%(tasks)s::uuid[], %(states)s::text[]) AS e(task_id, state)
    JOIN deadletters_deadletter l ON l.task_id = e.task_id AND l.state IN ('open', 'reprocessed', 'discarded')
    JOIN tasks_task t ON t.id = l.task_id AND t.cycle > l.cycle
    ORDER BY l.id FOR UPDATE OF l
), settled AS (
    UPDATE deadletters_deadletter l SET state = current.to_state, state_at = now()
    FROM current WHERE l.id = current.id
)
INSERT INTO deadletters_letterevent (letter_id, at, from_state, to_state, actor, reason)
SELECT id, now(), state, to_state, '', '' FROM current
"""

# The error is that of the cycle's last attempt; one that was handed back at a drain has nothing to say.
WRITE = """
WITH written AS (
    INSERT INTO deadletters_deadletter (
        id, task_id, cycle, kind_id, provider_id, state, reason, error_code, fingerprint, title, last_error, failure,
        subject, attempts, cost, session_id, user_id, trace_id, created_at, state_at, discard_reason)
    SELECT died.letter_id, t.id, t.cycle, t.kind_id, COALESCE(last.provider_id, lane.provider_id), 'open', t.reason,
        COALESCE(NULLIF(t.error_code, ''), last.error_code, ''),
        COALESCE(NULLIF(last.fingerprint, ''), why.fingerprint),
        left(COALESCE(NULLIF(last.failure ->> 'title', ''), NULLIF(split_part(last.last_error, E'\\n', 1), ''),
                      why.text), 300),
        COALESCE(NULLIF(last.last_error, ''), why.text),
        last.failure, t.subject, spent.attempts, spent.cost, t.session_id, t.user_id, t.trace_id, now(), now(), ''
    FROM unnest(%(tasks)s::uuid[], %(letters)s::uuid[]) AS died(task_id, letter_id)
    JOIN tasks_task t ON t.id = died.task_id AND t.status = 'dead'
    JOIN tasks_lane lane ON lane.id = t.lane_id
    CROSS JOIN LATERAL jsonb_to_record(%(reasons)s::jsonb -> t.reason) AS why(text text, fingerprint text)
    LEFT JOIN LATERAL (
        SELECT a.provider_id, a.error_code, a.fingerprint, a.last_error, a.failure
        FROM tasks_attempt a WHERE a.task_id = t.id AND a.cycle = t.cycle
        ORDER BY a.outcome = 'interrupted', a.id DESC LIMIT 1
    ) last ON true
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE a.counted) AS attempts, COALESCE(sum(a.cost), 0) AS cost
        FROM tasks_attempt a WHERE a.task_id = t.id AND a.cycle = t.cycle
    ) spent
    RETURNING id
)
INSERT INTO deadletters_letterevent (letter_id, at, from_state, to_state, actor, reason)
SELECT id, now(), '', 'open', '', '' FROM written
"""


class LetterRecorder:
    """The one recorder of deaths: two statements a batch, whatever its size."""

    def record_deaths(self, task_ids: Sequence[UUID]) -> None:
        """Write one open letter for each task that has just died; the letter its cycle came from has died again.

        Raises RuntimeError when a letter would be missing, so that the death is rolled back rather than lost.
        """
        tasks = list(dict.fromkeys(task_ids))
        if not tasks:
            return
        letters = [uuid7() for _ in tasks]
        # The earlier letter first: only one letter of a task may be current.
        self._settle([(task_id, LetterState.DIED_AGAIN) for task_id in tasks])
        params: dict[str, Any] = {"tasks": tasks, "letters": letters, "reasons": json.dumps(stored_reasons())}
        with connection.cursor() as cursor:
            cursor.execute(WRITE, params)
            if cursor.rowcount != len(tasks):
                raise RuntimeError(f"{len(tasks)} tasks died, but {cursor.rowcount} dead letters could be written.")

    def record_ends(self, ends: Sequence[tuple[UUID, Status]]) -> None:
        """Settle the letters of tasks that succeeded (recovered), were cancelled or skipped in a later cycle."""
        self._settle([(task_id, ENDS[status]) for task_id, status in ends])

    def _settle(self, moves: Sequence[tuple[UUID, LetterState]]) -> None:
        if not moves:
            return
        params: dict[str, Any] = {
            "tasks": [task_id for task_id, _ in moves],
            "states": [state.value for _, state in moves],
        }
        with connection.cursor() as cursor:
            cursor.execute(SETTLE, params)
