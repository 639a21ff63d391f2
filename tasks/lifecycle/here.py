"""Work that ran at once in the process that asked for it: task, attempt and events, written when it is over."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from tasks.lifecycle.end import FailureRecord
from tasks.lifecycle.recorder import recorder
from tasks.lifecycle.submit import submit
from tasks.models import Attempt, Task
from tasks.states import Outcome, Reason, Status

# Ready only inside this transaction, which nobody else sees: no worker can take it, so no lease is needed.
END = """
WITH moved AS (
    UPDATE tasks_task t SET
        status = %(status)s, status_at = now(), finished_at = now(), created_at = a.started_at,
        cycle_started_at = a.started_at, event_seq = t.event_seq + 2, result = %(result)s::jsonb, reason = %(reason)s,
        error_code = %(code)s, failures = %(failures)s
    FROM tasks_attempt a
    WHERE t.id = %(task)s AND t.status = 'ready' AND a.id = %(attempt)s
    RETURNING t.id, t.event_seq, t.cycle
)
INSERT INTO tasks_taskevent (task_id, seq, at, type, from_status, to_status, cycle, attempt_id, actor, data)
SELECT id, event_seq - 1, now(), 'ran_here', 'ready', 'running', cycle, %(attempt)s, '', '{}'::jsonb FROM moved
UNION ALL
SELECT id, event_seq, now(), %(type)s, 'running', %(status)s, cycle, %(attempt)s, '', %(data)s::jsonb FROM moved
"""


def record_run(
    kind: str,
    payload: Any,
    *,
    seconds: float,
    result_text: str | None = None,
    failed: FailureRecord | None = None,
    **options: Any,
) -> Attempt:
    """Record one run that is over, in the caller's transaction; its attempt, which knows its task.

    ``seconds``: how long it ran until now. ``result_text``: the JSON of its value, or ``failed``: why it died; its
    caller was told, so it is not retried, but it has its letter. ``options``: as for ``submit``, whose SubmitError this
    raises. The attempt has no worker.
    """
    with transaction.atomic():
        task = submit(kind, payload, **options)
        attempt = Attempt.objects.create(task=task, cycle=1, started_at=Now() - timedelta(seconds=max(seconds, 0.0)))
        _end_attempt(attempt, failed)
        _end_task(task, attempt, result_text, failed)
    return attempt


def _end_attempt(attempt: Attempt, failed: FailureRecord | None) -> None:
    ended: dict[str, Any] = {"outcome": Outcome.SUCCEEDED, "finished_at": Now()}
    if failed:
        ended |= {
            "outcome": Outcome.FAILED,
            "error_code": failed.code,
            "fingerprint": failed.fingerprint,
            "last_error": failed.last_error,
            "failure": failed.failure,
            "decision": _decision(),
        }
    Attempt.objects.filter(pk=attempt.pk).update(**ended)


def _decision() -> dict[str, str]:
    return {"action": "die", "reason": str(Reason.NOT_RETRYABLE), "because": "ran_here"}


def _end_task(task: Task, attempt: Attempt, result_text: str | None, failed: FailureRecord | None) -> None:
    values: dict[str, Any] = {
        "task": task.pk,
        "attempt": attempt.pk,
        "status": Status.DEAD if failed else Status.SUCCEEDED,
        "type": "died" if failed else "succeeded",
        "result": result_text,
        "reason": Reason.NOT_RETRYABLE if failed else "",
        "code": failed.code if failed else "",
        "failures": 1 if failed else 0,
        "data": json.dumps({**_decision(), "error_code": failed.code} if failed else {}),
    }
    with connection.cursor() as cursor:
        cursor.execute(END, values)
    if failed:
        recorder().record_deaths([task.pk])
