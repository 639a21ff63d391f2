"""Tasks that die the way they do in production: submitted, claimed and finished by the lifecycle itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.utils import timezone

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.lifecycle import Claimed, End, FailureRecord, Usage
from tasks.models import Kind, Provider, Task, WorkerProcess
from tasks.states import Outcome, Reason, Status

FAILED = FailureRecord(
    code="AI_PROVIDER_ERROR",
    fingerprint="f" * 40,
    last_error="InternalServerError: 500: the model is on fire",
    failure={
        "exception": "openai.InternalServerError",
        "message": "500: the model is on fire",
        "http_status": 500,
        "headers": {"x-request-id": "req-7"},
        "body": '{"error": {"message": "the model is on fire"}}',
        "traceback": 'Traceback (most recent call last):\n  File "handlers.py", line 3, in triage\n    ask(model)',
        "provider": "acme",
        "cause_chain": ["httpx2.ConnectError: refused"],
        "title": "the model is on fire",
    },
)


def failed(**failure: Any) -> FailureRecord:
    """The failure above with other details."""
    return replace(FAILED, failure={**FAILED.failure, **failure})


def provider(name: str = "acme", **fields: Any) -> Provider:
    """A provider, made once."""
    return Provider.objects.get_or_create(name=name, defaults={"base_url": "http://127.0.0.1:9/v1", **fields})[0]


def kind(name: str = "ticket.triage", **fields: Any) -> Kind:
    """A prompt kind, made once."""
    found = Kind.objects.filter(pk=name).first()
    if found:
        return found
    made = Kind(name=name, **{"provider": provider(), "model": "m-1", "prompt": "{{ text }}", **fields})
    made.save()
    return made


def worker() -> WorkerProcess:
    """A live worker process."""
    return WorkerProcess.objects.create(
        role="worker", cluster="test", host="here", pid=1, slots=50, lease_until=timezone.now() + timedelta(hours=1)
    )


def submit(payload: Any = None, *, of: Kind | None = None, **options: Any) -> Task:
    """A ready task."""
    return lifecycle.submit((of or kind()).name, {"text": "late again"} if payload is None else payload, **options)


def claim(count: int = 1, *, by: WorkerProcess | None = None) -> tuple[WorkerProcess, list[Claimed]]:
    """Claim ready tasks; the worker that holds them, and them."""
    holder = by or worker()
    return holder, lifecycle.claim(holder.pk, count, [])


def end(claimed: Claimed, outcome: Outcome = Outcome.FAILED, **changes: Any) -> End:
    """The end of a claimed attempt: a failure that kills, unless said otherwise."""
    fields: dict[str, Any] = {"action": "die", "reason": Reason.NOT_RETRYABLE, "failed": FAILED}
    if outcome != Outcome.FAILED:
        fields = {}
    return End(task_id=claimed.task_id, attempt_id=claimed.attempt_id, outcome=outcome, **{**fields, **changes})


def run(*, outcome: Outcome = Outcome.FAILED, count: int = 1, cost: str | None = None, **changes: Any) -> None:
    """Claim ready tasks and end them all the same way."""
    holder, claimed = claim(count)
    if cost is not None:
        changes["usage"] = Usage(input_tokens=7, output_tokens=5, cost=Decimal(cost))
    saved = lifecycle.finish(holder.pk, [end(one, outcome, **changes) for one in claimed])
    if len(saved.won) != count:
        raise AssertionError(f"{count} tasks were to end, {len(saved.won)} did")


def succeed() -> None:
    """Let the one ready task succeed."""
    run(outcome=Outcome.SUCCEEDED, result_text='"done"')


def letter(*, state: str = "open", **options: Any) -> DeadLetter:
    """The letter of a task that died at once, brought to ``state`` by what brings it there."""
    from deadletters import triage
    from tests.deadletters import people

    task = submit(**options)
    run()
    made = letter_of(task.id)
    if state == "discarded":
        triage.discard([made.id], user=people.operator(), reason="a test ticket")
    elif state != "open":
        triage.reprocess([made.id], user=people.operator())
        _end_cycle_two(task.id, state)
    made.refresh_from_db()
    return made


def _end_cycle_two(task_id: UUID, state: str) -> None:
    if state == "recovered":
        succeed()
    elif state == "died_again":
        run()
    elif state == "cancelled":
        lifecycle.cancel([task_id], actor="ana")


def letter_of(task_id: UUID, cycle: int = 1) -> DeadLetter:
    """The letter of one cycle of a task."""
    return DeadLetter.objects.get(task_id=task_id, cycle=cycle)


def status_of(task_id: UUID) -> Status:
    """Where the task stands in the database."""
    return Status(Task.objects.values_list("status", flat=True).get(pk=task_id))
