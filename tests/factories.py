"""Rows as the lifecycle leaves them, for every status: with the attempts and events that lead there.

They go straight to the tables, so that a test can place them in time; the database's own checks hold for them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group, User
from django.db.models import JSONField, Value
from django.utils import timezone

from tasks.lifecycle import recorder
from tasks.models import Attempt, Kind, ModelCall, Provider, Task, TaskEvent, WorkerProcess
from tasks.models.ids import uuid7
from tasks.states import COUNTED, FINAL, Outcome, Reason, Status

PASSWORD = "correct horse battery"
ERROR = "openai.InternalServerError: 500 the model is on fire"
_pids = count(1000)


def make_user(name: str = "ana", group: str | None = "operate") -> User:
    """A person in one of the groups view, operate, configure; or in none."""
    user = User.objects.create_user(name, password=PASSWORD)
    if group:
        user.groups.add(Group.objects.get(name=group))
    return user


def make_provider(name: str = "acme", **fields: Any) -> Provider:
    """A provider, made once."""
    return Provider.objects.get_or_create(name=name, defaults={"base_url": "http://127.0.0.1:9/v1", **fields})[0]


def make_kind(name: str = "ticket.triage", **fields: Any) -> Kind:
    """A prompt kind, made once; with ``handler`` a kind that is run by code."""
    found = Kind.objects.filter(pk=name).first()
    if found:
        return found
    prompt = {} if fields.get("handler") else {"provider": make_provider(), "model": "m-1", "prompt": "{{ text }}"}
    kind = Kind(name=name, subject="subject", **{**prompt, **fields})
    kind.save()
    return kind


def make_worker(*, lease: float = 3600, **fields: Any) -> WorkerProcess:
    """A worker process whose lease lasts ``lease`` more seconds."""
    fields = {"role": "worker", "cluster": "test", "host": "worker-1", "pid": next(_pids), "slots": 50, **fields}
    return WorkerProcess.objects.create(lease_until=timezone.now() + timedelta(seconds=lease), **fields)


def make_task(status: Status = Status.READY, *, ago: float = 60, failures: int | None = None, **fields: Any) -> Task:
    """A task in ``status``, submitted ``ago`` seconds ago.

    ``failures``: counted failures of the cycle, each an attempt (by default what the status needs: one for retryable,
    the kind's whole budget for dead). Further fields are the model's; ``kind`` may be a name.
    """
    kind = fields.pop("kind", None) or make_kind()
    kind = make_kind(kind) if isinstance(kind, str) else kind
    start = timezone.now() - timedelta(seconds=ago)
    failures = _failures(status, kind) if failures is None else failures
    task = Task(id=id_at(start), kind=kind, lane=kind.lane(), **{"payload": {"subject": "Late again"}, **fields})
    if task.payload is None:  # JSON's null, not the database's
        task.payload = Value(None, JSONField())
    task.status, task.failures = Status.READY, failures
    task.created_at = task.status_at = task.run_after = start
    task.subject = fields.get("subject", "Late again")
    task.save(force_insert=True)
    _event(task, "submitted", start, to_status=Status.READY)
    _live(task, status, start, failures)
    return Task.objects.get(pk=task.pk)


def id_at(moment: datetime) -> UUID:
    """A task's id as it would have been made at ``moment``."""
    milliseconds = int(moment.timestamp() * 1000)
    return UUID(int=(milliseconds << 80) | (uuid7().int & ((1 << 80) - 1)))


def _failures(status: Status, kind: Kind) -> int:
    return {Status.RETRYABLE: 1, Status.DEAD: kind.max_attempts}.get(status, 0)


def _live(task: Task, status: Status, start: datetime, failures: int) -> None:
    """Let the task live up to ``status``: its attempts and events, then its row."""
    moment = start + timedelta(seconds=1)
    for number in range(1, failures + 1):
        attempt = make_attempt(task, Outcome.FAILED, at=moment, number=number)
        task.cycle_started_at = task.cycle_started_at or moment
        moment += timedelta(seconds=3)
        last = status == Status.DEAD and number == failures
        _event(task, "died" if last else "retry", moment, attempt=attempt, data={"error_code": attempt.error_code})
    changes: dict[str, Any] = {}
    if status in (Status.RUNNING, Status.SUCCEEDED, Status.UNKNOWN):
        changes = _last_attempt(task, status, moment)
    if status in (Status.RETRYABLE, Status.SCHEDULED):
        changes["run_after"] = timezone.now() + timedelta(seconds=14)
    if status == Status.DEAD:
        changes.setdefault("reason", task.reason or Reason.ATTEMPTS_EXHAUSTED)
    if failures:
        changes["error_code"] = task.error_code or "AI_UPSTREAM_5XX"
    if status in FINAL:
        changes["finished_at"] = moment
    if status in (Status.CANCELLED, Status.SKIPPED):
        _event(task, str(status), moment, to_status=status)
    _store(task, status=status, status_at=moment, cycle_started_at=task.cycle_started_at, **changes)
    if status == Status.DEAD:
        recorder().record_deaths([task.pk])


def _last_attempt(task: Task, status: Status, moment: datetime) -> dict[str, Any]:
    outcome = {Status.RUNNING: Outcome.RUNNING, Status.SUCCEEDED: Outcome.SUCCEEDED}.get(status, Outcome.LOST)
    attempt = make_attempt(task, outcome, at=moment)
    task.cycle_started_at = task.cycle_started_at or moment
    _event(task, "claimed", moment, attempt=attempt, to_status=Status.RUNNING)
    if status == Status.RUNNING:
        return {"worker": attempt.worker, "attempt": attempt}
    _event(task, "succeeded" if status == Status.SUCCEEDED else "rescued", moment, attempt=attempt, to_status=status)
    return {"result": {"category": "billing"}} if status == Status.SUCCEEDED else {}


def _store(task: Task, **changes: Any) -> None:
    Task.objects.filter(pk=task.pk).update(**changes)


def make_attempt(
    task: Task, outcome: Outcome = Outcome.FAILED, *, at: datetime | None = None, number: int = 1, **fields: Any
) -> Attempt:
    """An attempt of ``task`` that began ``at`` and, unless it runs, lasted two seconds."""
    start = at or timezone.now() - timedelta(seconds=10)
    told: dict[str, Any] = {"input_tokens": 120, "output_tokens": 40, "cost": Decimal("0.0012")}
    if outcome in (Outcome.FAILED, Outcome.SNOOZED):
        action = {"action": "snooze" if outcome == Outcome.SNOOZED else "retry", "delay_seconds": 2.0 ** (number - 1)}
        told |= {
            "error_code": "AI_UPSTREAM_5XX",
            "fingerprint": "9f3c21ab" * 5,
            "last_error": ERROR,
            "failure": {"exception": "openai.InternalServerError", "http_status": 500, "title": "on fire"},
            "decision": action,
        }
    if outcome != Outcome.RUNNING:
        told["finished_at"] = start + timedelta(seconds=2)
    if outcome in COUNTED or outcome == Outcome.RUNNING:
        told["prompt_version"] = task.kind.prompt_version
    fields = {"worker": _a_worker(), "provider": task.lane.provider, "cycle": task.cycle, **told, **fields}
    return Attempt.objects.create(task=task, outcome=outcome, started_at=start, **fields)


def _a_worker() -> WorkerProcess:
    return WorkerProcess.objects.filter(role="worker", lost_at__isnull=True).first() or make_worker()


def make_call(attempt: Attempt, **fields: Any) -> ModelCall:
    """A call in the trail of an attempt."""
    told = {
        "seq": attempt.calls.count() + 1,
        "provider_name": "acme",
        "model": "m-1",
        "messages": [{"role": "system", "content": "Sort the ticket."}, {"role": "user", "content": "Late again"}],
        "answer": '{"category": "billing"}',
        "finish_reason": "stop",
        "http_status": 200,
        "started_at": attempt.started_at,
        "duration_ms": 1840,
        "input_tokens": 120,
        "output_tokens": 40,
        "provider_request_id": "req-7",
    }
    return ModelCall.objects.create(attempt=attempt, **{**told, **fields})


def _event(task: Task, type: str, at: datetime, **fields: Any) -> TaskEvent:
    task.event_seq += 1
    _store(task, event_seq=task.event_seq)
    return TaskEvent.objects.create(task=task, seq=task.event_seq, type=type, at=at, cycle=task.cycle, **fields)
