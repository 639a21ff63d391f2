"""A small world for the moves: kinds, workers, claimed tasks; made with the lifecycle itself."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection

from tasks import lifecycle
from tasks.engine import lease
from tasks.lifecycle import Claimed, End, FailureRecord
from tasks.models import Kind, Provider, Task, TaskEvent
from tasks.states import Outcome


def provider(name: str = "p", **fields: Any) -> Provider:
    """A provider that nobody calls."""
    return Provider.objects.create(name=name, base_url="http://127.0.0.1:9/v1", **fields)


def prompt_kind(name: str = "ticket.triage", **fields: Any) -> Kind:
    """A prompt kind on its own provider ``p``, without jitter."""
    where = fields.pop("provider", None) or Provider.objects.filter(name="p").first() or provider()
    return Kind.objects.create(name=name, provider=where, model="m", prompt="{{ text }}", jitter=0.0, **fields)


def handler_kind(name: str = "refund.execute", **fields: Any) -> Kind:
    """A kind run in code, so not safe to rerun unless said."""
    return Kind.objects.create(name=name, handler="refund", **fields)


def worker(*reconcilers: str) -> int:
    """A registered worker process, which can ask these handlers about vanished work."""
    return lease.register("worker", "host/redrive/1", 10, ["refund"], reconcilers)


def claimed(kind: Kind, worker_id: int, count: int = 1) -> list[Claimed]:
    """``count`` new tasks of the kind, claimed by the worker."""
    lifecycle.submit_many(kind.name, [{"text": f"ticket {n}"} for n in range(count)])
    rows = lifecycle.claim(worker_id, count, ["refund"])
    assert len(rows) == count
    return rows


def succeeded(row: Claimed, result: str = '"done"') -> End:
    """The end of an attempt that went well."""
    return End(task_id=row.task_id, attempt_id=row.attempt_id, outcome=Outcome.SUCCEEDED, result_text=result)


def failed(row: Claimed, action: str, code: str = "AI_UPSTREAM_5XX", **more: Any) -> End:
    """The end of an attempt that failed, and what follows."""
    failure = FailureRecord(code=code, fingerprint="f" * 16, last_error="busy", failure={"title": "busy"})
    outcome = Outcome.SNOOZED if action == "snooze" else Outcome.FAILED
    return End(task_id=row.task_id, attempt_id=row.attempt_id, outcome=outcome, failed=failure, action=action, **more)


def stored(task_id: UUID) -> Task:
    """The task as it stands in the database."""
    return Task.objects.get(pk=task_id)


def events(task_id: UUID) -> list[tuple[str, str, str]]:
    """(type, from, to) of each event, in order; the numbers have no gap."""
    rows = list(TaskEvent.objects.filter(task_id=task_id).order_by("seq"))
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    return [(row.type, row.from_status, row.to_status) for row in rows]


def age(table: str, column: str, seconds: float, where: str = "true") -> None:
    """Move a time of rows into the past: the database's clock rules, so tests move rows and not the clock."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table} SET {column} = {column} - make_interval(secs => %s) WHERE {where}",  # noqa: S608
            [seconds],
        )


def a_call(provider: str = "p", tokens: int = 0) -> dict[str, Any]:
    """A line of the trail, as an end carries it."""
    return {
        **{"seq": 1, "provider_name": provider, "model": "m", "messages": [], "answer": "", "finish_reason": "stop"},
        **{"input_tokens": tokens, "output_tokens": 0, "cost": None, "provider_request_id": "", "http_status": 200},
        **{"error": "", "mended": [], "tool_calls": [], "duration_ms": 1, "started_at": "2026-01-01T00:00:00Z"},
    }
