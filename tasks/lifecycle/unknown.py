"""unknown → cancelled, ready or dead: what becomes of cut-off work about which nobody is asked, or not any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from tasks.lifecycle import suspects
from tasks.lifecycle.moves import Locked, Move, apply, lock, piecewise
from tasks.states import Reason, Status

BATCH = 500
#: So often a handler is asked what became of one attempt.
MAX_ASKS = 10
#: So long a task waits to be asked while no live process knows how: a deployment, a machine that is down.
NOBODY_SECONDS = 600.0
#: An interrupted attempt may still be at work for so long: its process is killed within 3 s after the drain time.
FIRST_ASK_SECONDS = 5.0
WORKER_LOST = "AI_WORKER_LOST"

# What is to be asked stays, and what is being asked: all others are decided here. Who can be asked is what live workers
# have told. Where there is none, the process that ran the attempt, or this one, tells whether somebody may come back.
SETTLES = f"""t.status = 'unknown' AND (
    t.cancel_requested_at IS NOT NULL OR COALESCE(k.safe_to_rerun, k.handler = '')
    OR (t.asks >= %s AND COALESCE(t.ask_after, t.status_at) <= now())
    OR {suspects.DIED_ASKING}
    OR NOT (
        k.handler = ANY(ARRAY(
            SELECT unnest(w.reconcilers) FROM tasks_workerprocess w WHERE w.lost_at IS NULL AND w.stopped_at IS NULL))
        OR (COALESCE(t.ask_after, t.status_at) > now() - make_interval(secs => %s) AND (
            k.handler = ANY(%s) OR k.handler = ANY(COALESCE((
                SELECT w.reconcilers FROM tasks_attempt a JOIN tasks_workerprocess w ON w.id = a.worker_id
                WHERE a.task_id = t.id ORDER BY a.id DESC LIMIT 1), '{{}}'))))))"""  # noqa: S608 - our own words


def settle_unknown(known: Sequence[str] = ()) -> int:
    """Decide one batch of unknown tasks that are not to be asked, or not any more; how many.

    ``known``: the handlers that this process could ask, although it is no worker.
    """
    with transaction.atomic():
        rows = lock(SETTLES, _params(known), limit=BATCH, skip_locked=True)
        return piecewise(rows, _settle) if rows else 0


def settle_rows(rows: Sequence[Locked], known: Sequence[str]) -> None:
    """Decide these tasks, which are unknown since this transaction, at once where they are not to be asked."""
    found = lock(f"t.id = ANY(%s) AND ({SETTLES})", [[row.id for row in rows], *_params(known)])
    if found:
        _settle(found)


def _params(known: Sequence[str]) -> list[Any]:
    return [MAX_ASKS, NOBODY_SECONDS, list(known)]


def _settle(rows: Sequence[Locked]) -> int:
    verdicts = suspects.verdicts(row.id for row in rows)
    return len(apply([_after_unknown(row, row.id in verdicts, verdicts.get(row.id, False)) for row in rows]))


def _after_unknown(row: Locked, is_condemned: bool, died_asking: bool) -> Move:
    """Where a task goes that nobody is asked about: cancelled where asked for, dead, or to ready where that is safe.

    A condemned one (``suspects``) that was asked about in vain is no less open than any other.
    """
    if row.cancel_requested:
        return Move(id=row.id, type="cancelled", from_status=Status.UNKNOWN, to_status=Status.CANCELLED)
    if is_condemned and (row.reruns_safely or not row.asks or died_asking):
        return death(row, Reason.LEASE_EXPIRED)
    if not row.reruns_safely:
        return death(row, Reason.OUTCOME_UNKNOWN)
    return Move(id=row.id, type="requeued", from_status=Status.UNKNOWN, to_status=Status.READY)


def death(row: Locked, reason: Reason, code: str = WORKER_LOST, **data: Any) -> Move:
    """unknown → dead. ``data``: what more the event tells."""
    asked = {"asks": row.asks} if row.asks else {}
    return Move(
        id=row.id,
        type="died",
        from_status=Status.UNKNOWN,
        to_status=Status.DEAD,
        reason=reason,
        error_code=code,
        data={"reason": str(reason), **asked, **data},
    )
