"""unknown → succeeded, ready or dead: asking a handler what became of the work of an attempt whose process vanished.

Whoever asks has the task for a window of time, which it renews while it asks; one that is killed loses nothing, as the
next one asks again after the window. The fence of every answer: still unknown, the same ask, the same attempt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from tasks.lifecycle import suspects
from tasks.lifecycle.end import FailureRecord
from tasks.lifecycle.moves import Locked, Move, apply, lock_ids, note, passed_over
from tasks.lifecycle.unknown import MAX_ASKS, death
from tasks.states import Reason, Status, Truth

#: Waits between two asks: doubling from the first to the longest.
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
#: Characters of an error that an event keeps.
ERROR_KEPT = 2_000


@dataclass(frozen=True, slots=True)
class Asked:
    """An unknown task that this process may ask about, with its last attempt. ``asks`` counts this one.

    ``process_ended``: whether the process of that attempt is known to have ended; else it may be frozen or cut off.
    ``condemned``: as ``suspects`` has it.
    """

    task_id: UUID
    attempt_id: int
    started_at: datetime
    process_ended: bool
    kind: str
    handler: str
    timeout_seconds: float
    cycle: int
    payload_text: str
    asks: int
    session_id: str
    user_id: str
    trace_id: str
    tags: list[str]
    condemned: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one ask. ``result_text``: JSON, where the work is done.

    ``failed``: why there was no answer; of work that is done, why its result cannot be stored.
    """

    asked: Asked
    truth: Truth
    result_text: str | None = None
    failed: FailureRecord | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The tasks whose answer was recorded, those where it came too late, and those whose row somebody else holds."""

    won: frozenset[UUID]
    refused: frozenset[UUID]
    busy: frozenset[UUID]


# What settles by itself (cancelled, safe to rerun: ``unknown.SETTLES``) is not asked about.
# Of one that was condemned the history tells who asks: whether that process dies meanwhile decides it.
# A process asks about one such at a time, as its death would condemn them all.
DUE = f"""
    SELECT t.id, k.handler, k.timeout_seconds, {{condemned}} AS condemned
    FROM tasks_task t JOIN tasks_kind k ON k.name = t.kind_id
    WHERE t.status = 'unknown' AND k.handler = ANY(%(handlers)s) AND COALESCE(t.ask_after, t.status_at) <= now()
      AND t.asks < %(max_asks)s AND t.cancel_requested_at IS NULL
      AND k.safe_to_rerun IS NOT TRUE AND NOT {suspects.DIED_ASKING}
      AND {suspects.WAS_CONDEMNED} = {{condemned}}
    ORDER BY COALESCE(t.ask_after, t.status_at), t.id
    LIMIT {{most}} FOR NO KEY UPDATE OF t SKIP LOCKED
"""  # noqa: S608 - our own words
ASK = f"""
WITH condemned AS MATERIALIZED ({DUE.format(condemned="true", most="%(condemned)s::int")}
), usual AS MATERIALIZED ({DUE.format(condemned="false", most="%(count)s")}
), due AS MATERIALIZED (
    SELECT * FROM (SELECT * FROM condemned UNION ALL SELECT * FROM usual) AS both_sorts
    ORDER BY condemned DESC LIMIT %(count)s
), live AS MATERIALIZED (
    SELECT id FROM tasks_workerprocess WHERE id = %(worker)s AND lost_at IS NULL AND stopped_at IS NULL
), asked AS (
    UPDATE tasks_task t SET asks = t.asks + 1, ask_after = now() + make_interval(secs => %(window)s),
        event_seq = t.event_seq + due.condemned::int
    FROM due CROSS JOIN live WHERE t.id = due.id AND t.status = 'unknown'
    RETURNING t.id, t.kind_id, due.handler, due.timeout_seconds, t.cycle, t.payload, t.asks,
              t.session_id, t.user_id, t.trace_id, t.tags, t.event_seq, due.condemned
), noted AS (
    INSERT INTO tasks_taskevent (task_id, seq, at, type, from_status, to_status, cycle, actor, data)
    SELECT id, event_seq, now(), 'asking', '', '', cycle, '', jsonb_build_object('asks', asks, 'worker', %(worker)s)
    FROM asked WHERE condemned
)
SELECT asked.id, last.id, last.started_at, w.exit_seen_at IS NOT NULL OR w.stopped_at IS NOT NULL,
       kind_id, handler, timeout_seconds::float8, cycle, payload::text, asks, session_id, user_id, trace_id, tags,
       condemned
FROM asked CROSS JOIN LATERAL (
    SELECT a.id, a.started_at, a.worker_id FROM tasks_attempt a WHERE a.task_id = asked.id ORDER BY a.id DESC LIMIT 1
) AS last
LEFT JOIN tasks_workerprocess w ON w.id = last.worker_id
"""  # noqa: S608 - our own words


def ask(
    worker_id: int, count: int, handlers: Sequence[str], window_seconds: float, *, condemned: bool = True
) -> list[Asked]:
    """Take up to ``count`` unknown tasks to ask about, those due longest first, each for ``window_seconds``.

    ``handlers``: those that this process can ask. ``condemned``: whether one of them may be a condemned one; never two.
    A worker that is marked lost or stopped gets nothing.
    """
    parameters: dict[str, Any] = {
        "worker": worker_id,
        "count": count,
        "handlers": list(handlers),
        "window": window_seconds,
        "max_asks": MAX_ASKS,
        "condemned": condemned,
    }
    with connection.cursor() as cursor:
        cursor.execute(ASK, parameters)
        return [Asked(*row) for row in cursor.fetchall()]


# A row that somebody else holds just now is renewed the next time: a window is longer than two of them.
RENEW = """
WITH mine AS MATERIALIZED (
    SELECT t.id, t.asks FROM jsonb_to_recordset(%(asked)s::jsonb) AS a(id uuid, attempt_id bigint, asks int)
    JOIN tasks_task t ON t.id = a.id
    WHERE t.status = 'unknown' AND t.asks = a.asks
      AND a.attempt_id = (SELECT max(l.id) FROM tasks_attempt l WHERE l.task_id = t.id)
), free AS MATERIALIZED (
    SELECT t.id FROM mine JOIN tasks_task t ON t.id = mine.id WHERE t.status = 'unknown' AND t.asks = mine.asks
    ORDER BY t.id FOR NO KEY UPDATE OF t SKIP LOCKED
), renewed AS (
    UPDATE tasks_task t SET ask_after = now() + make_interval(secs => %(window)s) FROM free WHERE t.id = free.id
)
SELECT id FROM mine
"""


def renew(asked: Iterable[Asked], window_seconds: float) -> set[UUID]:
    """Begin the windows of these asks anew; the tasks that are still this process's to ask about."""
    rows = [{"id": str(one.task_id), "attempt_id": one.attempt_id, "asks": one.asks} for one in asked]
    with connection.cursor() as cursor:
        cursor.execute(RENEW, {"asked": json.dumps(rows), "window": window_seconds})
        return {row[0] for row in cursor.fetchall()}


def answer(worker_id: int, answers: Sequence[Answer]) -> Answered:
    """Record what came of asking, at most one answer a task, in one transaction; it waits for nobody's row lock.

    An answer is refused, and noted on its task, when that is not unknown any more, or somebody asked since.
    """
    by_task = {one.asked.task_id: one for one in answers}
    with transaction.atomic():
        locked = lock_ids(by_task, skip_locked=True)
        busy = passed_over(by_task, locked)
        attempts = _last_attempts(locked)
        mine = {key for key, row in locked.items() if _is_ours(row, attempts.get(key), by_task[key].asked)}
        waits = {key for key in mine if _is_put_off(by_task[key])}
        condemned = suspects.verdicts(mine - waits)
        moved = apply([_move(by_task[key], locked[key], worker_id, key in condemned) for key in sorted(mine - waits)])
        _put_off([by_task[key] for key in sorted(waits)], worker_id)
        late = by_task.keys() - busy - mine
        note([(key, "late_answer_refused", None, "", _told(by_task[key], worker_id)) for key in late & locked.keys()])
    return Answered(frozenset(moved | waits), frozenset(late), frozenset(busy))


def _last_attempts(rows: Mapping[UUID, Locked]) -> dict[UUID, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT task_id, max(id) FROM tasks_attempt WHERE task_id = ANY(%s) GROUP BY task_id", [list(rows)]
        )
        return dict(cursor.fetchall())


def _is_ours(row: Locked, last_attempt: int | None, asked: Asked) -> bool:
    return row.status == Status.UNKNOWN and row.asks == asked.asks and last_attempt == asked.attempt_id


def _is_put_off(one: Answer) -> bool:
    return one.truth == Truth.STILL_UNKNOWN and one.asked.asks < MAX_ASKS


def _move(one: Answer, row: Locked, worker_id: int, is_condemned: bool) -> Move:
    told = _told(one, worker_id)
    if one.truth == Truth.DONE and one.failed:
        return death(row, Reason.UNSTORABLE, one.failed.code, **told)
    if one.truth == Truth.DONE:
        return Move(
            id=row.id,
            type="reconciled",
            from_status=Status.UNKNOWN,
            to_status=Status.SUCCEEDED,
            error_code="",
            result_text=one.result_text,
            snoozed=0,
            data=told,
        )
    if one.truth == Truth.NOT_DONE and is_condemned:
        return death(row, Reason.LEASE_EXPIRED, **told)
    if one.truth == Truth.NOT_DONE:
        return Move(id=row.id, type="not_done", from_status=Status.UNKNOWN, to_status=Status.READY, data=told)
    return death(row, Reason.OUTCOME_UNKNOWN, **told)


def _told(one: Answer, worker_id: int) -> dict[str, Any]:
    told: dict[str, Any] = {"answer": str(one.truth), "asks": one.asked.asks, "worker": worker_id}
    if one.failed:
        told["error"] = one.failed.last_error[:ERROR_KEPT]
    return told


PUT_OFF = """
UPDATE tasks_task t SET ask_after = now() + make_interval(secs => w.seconds)
FROM jsonb_to_recordset(%s::jsonb) AS w(id uuid, seconds float8) WHERE t.id = w.id AND t.status = 'unknown'
"""


def _put_off(waits: Sequence[Answer], worker_id: int) -> None:
    """Ask again later, and say so on the task."""
    if not waits:
        return
    delays = {one.asked.task_id: wait_seconds(one.asked.asks) for one in waits}
    rows = [{"id": str(task_id), "seconds": seconds} for task_id, seconds in delays.items()]
    with connection.cursor() as cursor:
        cursor.execute(PUT_OFF, [json.dumps(rows)])
    note(
        [
            (
                one.asked.task_id,
                "asked",
                one.asked.attempt_id,
                "",
                {**_told(one, worker_id), "delay_seconds": delays[one.asked.task_id]},
            )
            for one in waits
        ]
    )


def wait_seconds(asks: int) -> float:
    """How long after the ask of that number the next one is due."""
    return float(min(FIRST_WAIT_SECONDS * 2 ** (asks - 1), LONGEST_WAIT_SECONDS))
