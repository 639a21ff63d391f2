"""The page of one task, its live part, what is loaded on demand, and Cancel."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _

from tasks import access, lifecycle
from tasks.models import Attempt, Task
from tasks.states import IRREVERSIBLE, Status
from tasks.views.action import record_action
from tasks.views.answer import answer
from tasks.views.document import stored_text
from tasks.views.history import history
from tasks.views.hurry import run_now_denied
from tasks.views.timeline import timeline
from tasks.views.timing import timings
from tasks.views.why import Crew, explain

#: Octets of a payload or result that stand on the page at once; a larger one is loaded on demand.
INLINE = 8 * 1024
#: Model calls of one attempt that are shown: as many as a handler can make, not counting repairs.
MOST_CALLS = 200


@access.page
def task_page(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """The whole page."""
    task = _find(task_id)
    payload = _document(task, "payload", task.payload_size)  # type: ignore[attr-defined]
    return render(request, "tasks/task.html", {**_live(task), "payload": payload})


@access.page
def task_live(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """All of the page that changes while the task is under way."""
    return render(request, "tasks/task_live.html", _live(_find(task_id)))


def _find(task_id: UUID) -> Task:
    return get_object_or_404(Task.objects.for_page().with_sizes(), pk=task_id)


def _live(task: Task) -> dict[str, Any]:
    crew = Crew()
    return {
        "task": task,
        "why": explain(task, crew),
        "provider": task.lane.provider,
        "progress": _progress(task),
        "timing": timings([task])[task.pk],
        "timeline": timeline(task),
        "history": history(task),
        "settled": task.status in IRREVERSIBLE,  # a dead one may be sent again elsewhere
        "cancel_denied": _cancel_denied(task),
        "waits_for_a_time": not run_now_denied(task),
        "result": _document(task, "result", task.result_size) if task.status == Status.SUCCEEDED else None,  # type: ignore[attr-defined]
    }


def _cancel_denied(task: Task) -> str:
    """Why this task cannot be cancelled now; empty where it can."""
    if task.status in IRREVERSIBLE or task.status == Status.DEAD:
        return _("It has ended: there is nothing to cancel.")
    return _("Cancel was asked for already; its worker is aborting it.") if task.cancel_requested_at else ""


def _progress(task: Task) -> dict[str, Any] | None:
    """What a running attempt told of itself: tokens so far, or a step of a total with a few words."""
    told = task.progress
    if task.status != Status.RUNNING or not isinstance(told, dict):
        return None
    step, total = told.get("step"), told.get("total")
    share = isinstance(step, int | float) and isinstance(total, int | float) and total > 0
    return {**told, "share": share}


def _document(task: Task, name: str, size: int | None) -> dict[str, Any]:
    """A stored JSON value for display: masked text where it is short, else its size and where it can be had."""
    url = reverse(f"task-{name}", args=[task.pk])
    if size is None or size > INLINE:
        return {"name": name, "size": size, "url": url, "text": None}
    return {"name": name, "size": size, "url": url, "text": stored_text(task.pk, name)}


@access.page
def task_document(request: HttpRequest, task_id: UUID, name: str) -> HttpResponse:
    """A long payload or result, masked: as the fragment for its fold, or as a page of its own without scripts."""
    task = get_object_or_404(Task.objects.only("id", "kind"), pk=task_id)
    context = {"task": task, "name": name, "text": stored_text(task.pk, name)}
    return render(request, _fragment_or_page(request, "tasks/document"), context)


@access.page
def attempt_details(request: HttpRequest, task_id: UUID, attempt_id: int) -> HttpResponse:
    """Everything kept of one attempt: the whole error, and the trail of its model calls."""
    attempt = get_object_or_404(
        Attempt.objects.select_related("task", "prompt_version", "worker").defer("task__payload", "task__result"),
        pk=attempt_id,
        task=task_id,
    )
    context = {"attempt": attempt, "task": attempt.task, "calls": attempt.calls.all()[:MOST_CALLS]}
    return render(request, _fragment_or_page(request, "tasks/attempt"), context)


@access.page
def attempt_log(request: HttpRequest, task_id: UUID, attempt_id: int) -> HttpResponse:
    """All lines that a handler wrote in one attempt; there are ``tasks.engine.log.MOST_LINES`` at the most."""
    attempt = get_object_or_404(Attempt.objects.only("id", "cycle", "outcome", "task_id"), pk=attempt_id, task=task_id)
    context = {"attempt": attempt, "task": attempt.task_id, "lines": attempt.log.all()}
    return render(request, _fragment_or_page(request, "tasks/log"), context)


@access.page
def task_attempts(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Older attempts, a page at a time (``before``: an attempt's id)."""
    task = get_object_or_404(Task.objects.for_page(), pk=task_id)
    context = {"task": task, "timeline": timeline(task, before=_number(request.GET.get("before")))}
    return render(request, "tasks/attempts_page.html", context)


@access.page
def task_events(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Older events, a page at a time (``before``: an event's number)."""
    task = get_object_or_404(Task.objects.for_page(), pk=task_id)
    context = {"task": task, "history": history(task, before=_number(request.GET.get("before")))}
    return render(request, "tasks/events_page.html", context)


def _fragment_or_page(request: HttpRequest, name: str) -> str:
    return f"{name}.html" if request.htmx else f"{name}_page.html"  # type: ignore[attr-defined]


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 19 else None


@access.verb
def cancel_task(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Cancel: at once where the task waits; where it runs, by asking its worker to abort the call."""
    task = get_object_or_404(Task.objects.only("id", "kind"), pk=task_id)
    back = reverse("task", args=[task.pk])
    with transaction.atomic():
        won = lifecycle.cancel([task.pk], actor=request.user.get_username())
        status = Task.objects.values_list("status", flat=True).get(pk=task.pk)
        done = "cancelled" if status == Status.CANCELLED else "asked its worker"
        record_action(request, "cancel_task", task, won=won, outcome=done if won else f"was {status}")
    if not won:
        return answer(request, _cancel_denied_now(task.pk), back=back, level="warning")
    if status == Status.CANCELLED:
        return answer(request, _("The task is cancelled."), back=back)
    return answer(
        request, _("Its worker was asked to abort the call; the task ends within a second or two."), back=back
    )


def _cancel_denied_now(task_id: UUID) -> str:
    task = Task.objects.only("status", "cancel_requested_at").get(pk=task_id)
    return _cancel_denied(task) or _("The task was not cancelled.")
