"""A task as the API tells of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _

from tasks.models import ErrorCode, Task
from tasks.states import Status

#: Told as they are.
PLAIN = (
    *("id", "status", "cycle", "priority", "progress", "created_at", "run_after", "status_at", "finished_at"),
    "event_seq",
)
#: All that is read, less the result, which may be large.
FIELDS = (*PLAIN, "kind_id", "reason", "error_code", "failures", "cancel_requested_at", "kind__max_attempts")


def urls(task_id: UUID) -> dict[str, str]:
    """Where to ask for the task, and where its events stream."""
    return {
        "status_url": reverse("api-1:task", args=[task_id]),
        "events_url": reverse("api-1:task-events", args=[task_id]),
    }


def state_of(task_id: UUID) -> dict[str, Any] | None:
    """The members of ``TaskOut``, or None where there is no such task."""
    row = Task.objects.filter(pk=task_id).values(*FIELDS, "result").first()
    return {**told([row])[0], "result": row["result"]} if row else None


def told(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """``FIELDS`` of each row as the API names them, with ``event_seq``."""
    every = list(rows)
    codes = {row["error_code"] for row in every if row["status"] == Status.DEAD and row["error_code"]}
    messages = dict(ErrorCode.objects.filter(pk__in=codes).values_list("pk", "user_message")) if codes else {}
    return [_told(row, messages) for row in every]


def _told(row: dict[str, Any], messages: dict[str, str]) -> dict[str, Any]:
    return {
        **{name: row[name] for name in PLAIN},
        "kind": row["kind_id"],
        "attempts": row["failures"],
        "max_attempts": row["kind__max_attempts"],
        "cancel_requested": row["cancel_requested_at"] is not None,
        "error": _death(row, messages),
        **urls(row["id"]),
    }


def _death(row: dict[str, Any], messages: dict[str, str]) -> dict[str, str] | None:
    if row["status"] != Status.DEAD:
        return None
    message = messages.get(row["error_code"]) or _("This could not be completed.")
    return {"code": row["error_code"], "reason": row["reason"], "message": message}
