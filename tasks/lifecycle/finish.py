"""running → wherever the attempt led: the ends of attempts, in batches, fenced by the attempt's id and its worker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from tasks.lifecycle import braking
from tasks.lifecycle.charges import charge
from tasks.lifecycle.end import RETRY, SNOOZE, End
from tasks.lifecycle.locks import leave_no_locks_behind
from tasks.lifecycle.log import keep_log
from tasks.lifecycle.moves import Locked, Move, apply, lock_ids, note, passed_over, tell_recorder
from tasks.lifecycle.success import store_plain, store_successes
from tasks.lifecycle.unknown import FIRST_ASK_SECONDS
from tasks.models import ModelCall
from tasks.states import Outcome, Status


@dataclass(frozen=True, slots=True)
class Saved:
    """The attempts whose end was recorded, those whose late end was refused by the fence, and those to try again.

    ``busy``: somebody else holds the task's row, or that of the provider to cool or hold, at this moment, perhaps for
    long (a caller's open transaction).
    """

    won: frozenset[int]
    refused: frozenset[int]
    busy: frozenset[int] = frozenset()


NOTHING = Saved(frozenset(), frozenset())


def finish(worker_id: int, ends: Sequence[End]) -> Saved:
    """Record the ends of attempts of this worker process; it waits for nobody's row lock.

    An end is refused, and noted on its task, when the task no longer belongs to this attempt and worker. Of two ends of
    one attempt the first counts. Each is recorded whole or not at all; after an error some may be.
    """
    by_attempt: dict[int, End] = {}
    for end in ends:
        by_attempt.setdefault(end.attempt_id, end)
    plain = _finish_plain(worker_id, list(by_attempt.values()))
    left = [end for attempt_id, end in by_attempt.items() if attempt_id not in plain]
    rest = _finish_whole(worker_id, left) if left else NOTHING
    return replace(rest, won=rest.won | plain)


def _finish_plain(worker_id: int, ends: Sequence[End]) -> frozenset[int]:
    """Those that one statement records. It needs a session that plans by index, which PgBouncer's are not."""
    return frozenset() if settings.REDRIVE_PGBOUNCER else frozenset(store_plain(worker_id, ends))


def _finish_whole(worker_id: int, ends: Sequence[End]) -> Saved:
    """All of these in one transaction."""
    by_attempt = {end.attempt_id: end for end in ends}
    with transaction.atomic():
        _prepare()
        succeeded = store_successes(worker_id, list(by_attempt.values()))
        good = [by_attempt.pop(attempt_id) for attempt_id, _, _ in succeeded]
        _keep_trail(good)
        keep_log([(end.attempt_id, line) for end in good for line in end.log])
        charge(good)
        tell_recorder([(task_id, Status.SUCCEEDED, cycle) for _, task_id, cycle in succeeded])
        rest = _finish_each(worker_id, list(by_attempt.values())) if by_attempt else NOTHING
    return replace(rest, won=rest.won | {end.attempt_id for end in good})


def _finish_each(worker_id: int, ends: Sequence[End]) -> Saved:
    """The same for those that need a look first: each leads where its row, its provider and its failure say."""
    locked = lock_ids((end.task_id for end in ends), skip_locked=True)
    held = passed_over((end.task_id for end in ends), locked)
    mine = [end for end in ends if _is_ours(locked.get(end.task_id), worker_id, end)]
    blocked = braking.behind_locked_providers(mine)
    held |= {end.task_id for end in mine if end.provider in blocked}
    mine = [end for end in mine if end.task_id not in held]
    ours = {end.attempt_id for end in mine}
    others = [end for end in ends if end.attempt_id not in ours and end.task_id not in held]
    stored = _stored_before(others)
    late = [end for end in others if end.attempt_id not in stored]
    braking.cool(mine)
    resolved = [(end, _move(end, locked[end.task_id])) for end in braking.apply_holds(mine)]
    _end_attempts(end for end, _ in resolved)
    _keep_trail(end for end, _ in resolved)
    keep_log([(end.attempt_id, line) for end in ends if end.task_id not in held for line in end.log])
    charge(end for end, _ in resolved)
    won = apply([move for _, move in resolved])
    _refuse(worker_id, late, locked)
    return Saved(
        stored | {end.attempt_id for end, _ in resolved if end.task_id in won},
        frozenset(end.attempt_id for end in late),
        frozenset(end.attempt_id for end in ends if end.task_id in held),
    )


def _prepare() -> None:
    """For this transaction: leave no locks behind, and find rows by their ids.

    Every statement here names its rows by id, a few of very many: the planner, whose statistics are always old on these
    tables, would now and then read all of one instead.
    """
    leave_no_locks_behind(enable_seqscan="off", enable_hashjoin="off", enable_mergejoin="off")


def _is_ours(row: Locked | None, worker_id: int, end: End) -> bool:
    return (
        row is not None
        and row.status == Status.RUNNING
        and row.attempt_id == end.attempt_id
        and row.worker_id == worker_id
    )


def _stored_before(ends: Sequence[End]) -> frozenset[int]:
    """The attempts whose end stands already: the commit went through and only its confirmation was lost."""
    if not ends:
        return frozenset()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM tasks_attempt WHERE id = ANY(%s) AND outcome NOT IN ('running', 'lost')",
            [[end.attempt_id for end in ends]],
        )
        return frozenset(row[0] for row in cursor.fetchall())


def _move(end: End, row: Locked) -> Move:
    to_status, kind, changes = _destination(end, row)
    usage = end.usage
    return Move(
        id=end.task_id,
        type=kind,
        from_status=Status.RUNNING,
        to_status=to_status,
        attempt_id=end.attempt_id,
        error_code=end.failed.code if end.failed else ("" if end.outcome == Outcome.SUCCEEDED else None),
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cost=str(usage.cost or 0),
        **changes,
    )


def _destination(end: End, row: Locked) -> tuple[Status, str, dict[str, Any]]:
    """Where the task goes, the event's type, and what else changes."""
    if end.outcome == Outcome.SUCCEEDED:
        return Status.SUCCEEDED, "succeeded", {"result_text": end.result_text, "snoozed": 0}
    if row.cancel_requested or end.outcome == Outcome.CANCELLED:
        return Status.CANCELLED, "cancelled", {"data": _data(end), "failures": int(end.outcome == Outcome.FAILED)}
    if end.outcome == Outcome.INTERRUPTED:
        if row.reruns_safely or not end.started:
            return Status.READY, "interrupted", {}
        return Status.UNKNOWN, "interrupted", {"ask_seconds": FIRST_ASK_SECONDS}
    if end.action == SNOOZE:
        return Status.RETRYABLE, "snoozed", {"delay_seconds": end.delay_seconds, "snoozed": 1, "data": _data(end)}
    counted = {"failures": int(end.outcome == Outcome.FAILED), "snoozed": 0, "data": _data(end)}
    if end.action == RETRY:
        return Status.RETRYABLE, "retry", {"delay_seconds": end.delay_seconds, **counted}
    return Status.DEAD, "died", {"reason": end.reason, **counted}


def _data(end: End) -> dict[str, Any]:
    data: dict[str, Any] = dict(end.decision or {})
    if end.failed:
        data["error_code"] = end.failed.code
    if end.reason:
        data["reason"] = str(end.reason)
    return data


# As in ``success``: no partial index may answer.
END_ATTEMPTS = """
UPDATE tasks_attempt a SET
    outcome = e.outcome, finished_at = now(), error_code = e.error_code, fingerprint = e.fingerprint,
    last_error = e.last_error, failure = e.failure, decision = e.decision, repairs = e.repairs, mended = e.mended,
    input_tokens = e.input_tokens, output_tokens = e.output_tokens, cost = e.cost
FROM jsonb_to_recordset(%s::jsonb) AS e(
    id bigint, outcome text, error_code text, fingerprint text, last_error text, failure jsonb, decision jsonb,
    repairs smallint, mended jsonb, input_tokens int, output_tokens int, cost numeric)
WHERE a.id = e.id AND a.outcome || '' = 'running'
"""


def _end_attempts(ends: Iterable[End]) -> None:
    rows = [_attempt_row(end) for end in ends]
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(END_ATTEMPTS, [json.dumps(rows)])


def _attempt_row(end: End) -> dict[str, Any]:
    failed, usage = end.failed, end.usage
    return {
        "id": end.attempt_id,
        "outcome": end.outcome,
        "error_code": failed.code if failed else "",
        "fingerprint": failed.fingerprint if failed else "",
        "last_error": failed.last_error if failed else "",
        "failure": failed.failure if failed else None,
        "decision": end.decision,
        "repairs": usage.repairs,
        "mended": usage.mended,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost": None if usage.cost is None else str(usage.cost),
    }


def _keep_trail(ends: Iterable[End]) -> None:
    calls = [ModelCall(attempt_id=end.attempt_id, **call) for end in ends for call in end.usage.calls]
    if calls:
        ModelCall.objects.bulk_create(calls)


def _refuse(worker_id: int, late: Sequence[End], locked: dict[UUID, Locked]) -> None:
    """Note each late end on its task, so that a person can see that a value was dropped, and count it."""
    known = {end.task_id: end for end in late if end.task_id in locked}
    note(
        [
            (task_id, "late_save_refused", end.attempt_id, "", {"outcome": str(end.outcome), "worker": worker_id})
            for task_id, end in known.items()
        ]
    )
    if late:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE tasks_workerprocess SET late_saves_refused = late_saves_refused + %s WHERE id = %s",
                [len(late), worker_id],
            )
