"""The statement that moves tasks: many rows, each with its own from and to; only claims and successes have theirs.

The caller has locked the rows (``lock``) and decided what each becomes; ``apply`` writes task and event in one
statement, repeats the from-status and the fence in its WHERE, and tells which rows it won. Deaths go to the recorder in
the same transaction.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from tasks.lifecycle.announce import announce_ready
from tasks.lifecycle.recorder import recorder
from tasks.models import Task
from tasks.models.ranges import LARGEST_COST
from tasks.retry import LONGEST_DELAY_SECONDS
from tasks.states import FINAL, Reason, Status

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What one locked task becomes. ``None`` leaves a column as it is."""

    id: UUID
    type: str
    from_status: Status
    to_status: Status
    attempt_id: int | None = None
    delay_seconds: float | None = None
    reason: Reason | None = None
    error_code: str | None = None
    result_text: str | None = None
    failures: int = 0
    #: None: unchanged; 0: the row of snoozes is broken; 1: one more in a row.
    snoozed: int | None = None
    rescues: int = 0
    #: Of a move to unknown: until its handler may be asked what became of the work.
    ask_seconds: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: str = "0"
    actor: str = ""
    data: dict[str, Any] = field(default_factory=dict)


#: ``asdict`` would copy each value deeply, for each row of a batch.
MOVE_FIELDS = [field.name for field in fields(Move)]


@dataclass(frozen=True, slots=True)
class Locked:
    """The columns of a locked task that decide what may happen to it."""

    id: UUID
    status: Status
    cycle: int
    worker_id: int | None
    attempt_id: int | None
    cancel_requested: bool
    reruns_safely: bool
    rescues: int
    kind: str
    asks: int


LOCK = """
SELECT t.id, t.status, t.cycle, t.worker_id, t.attempt_id, t.cancel_requested_at IS NOT NULL,
       COALESCE(k.safe_to_rerun, k.handler = ''), t.rescues, t.kind_id, t.asks
FROM tasks_task t JOIN tasks_kind k ON k.name = t.kind_id
WHERE %s ORDER BY t.id %s FOR NO KEY UPDATE OF t %s
"""

APPLY = """
WITH wanted AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(moves)s::jsonb) AS m(
        id uuid, type text, from_status text, to_status text, attempt_id bigint, delay_seconds float8, reason text,
        error_code text, result_text text, failures int, snoozed int, rescues int, ask_seconds float8,
        input_tokens bigint, output_tokens bigint, cost numeric, actor text, data jsonb)
), moved AS (
    UPDATE tasks_task t SET
        status = m.to_status, status_at = now(), worker_id = NULL, attempt_id = NULL,
        event_seq = t.event_seq + 1,
        run_after = CASE WHEN m.delay_seconds IS NULL THEN t.run_after
                         ELSE now() + LEAST(m.delay_seconds, %(longest)s) * interval '1 second' END,
        reason = COALESCE(m.reason, ''), error_code = COALESCE(m.error_code, t.error_code),
        result = m.result_text::jsonb,
        failures = t.failures + m.failures,
        snoozes = CASE WHEN m.snoozed IS NULL THEN t.snoozes WHEN m.snoozed = 0 THEN 0 ELSE t.snoozes + 1 END,
        rescues = t.rescues + m.rescues, asks = 0, ask_after = now() + m.ask_seconds * interval '1 second',
        input_tokens = t.input_tokens + m.input_tokens, output_tokens = t.output_tokens + m.output_tokens,
        cost = LEAST(t.cost + m.cost, %(largest)s),
        finished_at = CASE WHEN m.to_status = ANY(%(final)s) THEN now() END,
        cancel_requested_at = CASE WHEN m.to_status = ANY(%(final)s) THEN NULL ELSE t.cancel_requested_at END,
        progress = CASE WHEN m.to_status = 'succeeded' THEN t.progress END
    FROM wanted m
    WHERE t.id = m.id AND t.status = m.from_status AND t.attempt_id IS NOT DISTINCT FROM m.attempt_id
    RETURNING t.id, t.event_seq, t.cycle, m.type, m.from_status, m.to_status, m.attempt_id, m.actor, m.data
), noted AS (
    INSERT INTO tasks_taskevent (task_id, seq, at, type, from_status, to_status, cycle, attempt_id, actor, data)
    SELECT id, event_seq, now(), type, from_status, to_status, cycle, attempt_id, actor, data FROM moved
)
SELECT id, to_status, cycle FROM moved
"""


def lock(where: str, params: Sequence[Any], *, limit: int | None = None, skip_locked: bool = False) -> list[Locked]:
    """Lock tasks in the order of their ids (so that two batches cannot deadlock) and read what decides their fate."""
    sql = LOCK % (where, f"LIMIT {limit:d}" if limit else "", "SKIP LOCKED" if skip_locked else "")
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [Locked(row[0], Status(row[1]), *row[2:]) for row in cursor.fetchall()]


def lock_ids(ids: Iterable[UUID], *, skip_locked: bool = False) -> dict[UUID, Locked]:
    """Lock these tasks; missing from the answer are unknown ids and, with ``skip_locked``, those that others hold."""
    return {row.id: row for row in lock("t.id = ANY(%s)", [list(ids)], skip_locked=skip_locked)}


def passed_over(ids: Iterable[UUID], locked: Mapping[UUID, Locked]) -> set[UUID]:
    """Of these tasks those whose row somebody else holds: they exist, and ``lock_ids`` has skipped them."""
    return set(Task.objects.filter(pk__in=set(ids) - locked.keys()).values_list("pk", flat=True))


def apply(moves: Sequence[Move]) -> set[UUID]:
    """Make the moves; the ids of those that happened. Must run in a transaction that holds the rows' locks."""
    if not moves:
        return set()
    rows = [{name: getattr(move, name) for name in MOVE_FIELDS} | {"id": str(move.id)} for move in moves]
    with connection.cursor() as cursor:
        cursor.execute(
            APPLY,
            {
                "moves": json.dumps(rows),
                "final": sorted(FINAL),
                "longest": LONGEST_DELAY_SECONDS,
                "largest": LARGEST_COST,
            },
        )
        won = [(task_id, Status(status), cycle) for task_id, status, cycle in cursor.fetchall()]
    tell_recorder(won)
    if any(status == Status.READY for _, status, _ in won):
        announce_ready()
    return {task_id for task_id, _, _ in won}


def tell_recorder(won: Sequence[tuple[UUID, Status, int]]) -> None:
    """Let the recorder write the letters of (task, where it went, cycle), in the transaction of their moves."""
    deaths = [task_id for task_id, status, _ in won if status == Status.DEAD]
    if deaths:
        recorder().record_deaths(deaths)
    ends = [(task_id, status) for task_id, status, cycle in won if cycle > 1 and status in FINAL - {Status.DEAD}]
    if ends:
        recorder().record_ends(ends)


NOTE = """
WITH wanted AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%s::jsonb) AS n(id uuid, type text, attempt_id bigint, actor text, data jsonb)
), counted AS (
    UPDATE tasks_task t SET event_seq = t.event_seq + 1 FROM wanted n WHERE t.id = n.id
    RETURNING t.id, t.event_seq, t.cycle, n.type, n.attempt_id, n.actor, n.data
)
INSERT INTO tasks_taskevent (task_id, seq, at, type, from_status, to_status, cycle, attempt_id, actor, data)
SELECT id, event_seq, now(), type, '', '', cycle, attempt_id, actor, data FROM counted
"""


def note(notes: Sequence[tuple[UUID, str, int | None, str, dict[str, Any]]]) -> None:
    """Add events that move nothing: (task, type, attempt, actor, details). One note per task in a call."""
    if not notes:
        return
    keys = ("id", "type", "attempt_id", "actor", "data")
    rows = [dict(zip(keys, (str(task_id), *rest), strict=True)) for task_id, *rest in notes]
    with connection.cursor() as cursor:
        cursor.execute(NOTE, [json.dumps(rows)])


@lru_cache(maxsize=1_000)
def _tell_stuck(row: Locked) -> None:
    """Say it once per row and process, not at every pass."""
    logger.exception("Task %s (%s) cannot be moved; the others are. It is tried again.", row.id, row.status)


def piecewise(rows: Sequence[Locked], move: Callable[[Sequence[Locked]], int]) -> int:
    """``move`` all rows; where that fails, their halves: a row that cannot be moved keeps no other back.

    How many moved. To be called in the transaction that locked the rows. Raises what a lost connection raises.
    """
    try:
        with transaction.atomic():
            return move(rows)
    except Exception:
        if not connection.is_usable():
            raise
        if len(rows) == 1:
            _tell_stuck(rows[0])
            return 0
    middle = len(rows) // 2
    return piecewise(rows[:middle], move) + piecewise(rows[middle:], move)
