"""Let one task go before its time, or before others."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _

from tasks import access, lifecycle
from tasks.models import Task
from tasks.models.ranges import HIGHEST_PRIORITY, LOWEST_PRIORITY
from tasks.states import FINAL, Status
from tasks.views.action import record_action
from tasks.views.answer import answer
from tasks.words import word


def run_now_denied(task: Task) -> str:
    """Why this task cannot be run now; empty where it can."""
    if task.status in (Status.SCHEDULED, Status.RETRYABLE):
        return ""
    return _("It is %(status)s: it does not wait for a time.") % {"status": word(task.status)}


@access.verb
def run_task_now(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """A task that waits for its time is ready at once. Budget and deadline stay as they are."""
    task = get_object_or_404(Task.objects.only("id"), pk=task_id)
    with transaction.atomic():
        won = lifecycle.run_now([task.pk], actor=request.user.get_username())
        now = Task.objects.only("status").get(pk=task.pk)
        record_action(request, "run_task_now", task, won=won, outcome="ready" if won else f"was {now.status}")
    back = reverse("task", args=[task.pk])
    if not won:
        return answer(request, run_now_denied(now), back=back, level="warning")
    return answer(request, _("It is ready; a worker takes it as soon as one is free."), back=back)


@access.verb
def set_task_priority(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Another priority, a whole number: higher ones are claimed first."""
    task = get_object_or_404(Task.objects.only("id", "status"), pk=task_id)
    back = reverse("task", args=[task.pk])
    priority = _priority(request.POST.get("priority", ""))
    if priority is None:
        sentence = _("A priority is a whole number from %(lowest)d to %(highest)d.")
        limits = {"lowest": LOWEST_PRIORITY, "highest": HIGHEST_PRIORITY}
        return answer(request, sentence % limits, back=back, level="error", status=422)
    with transaction.atomic():
        won = lifecycle.set_priority([task.pk], priority, actor=request.user.get_username())
        status = Task.objects.values_list("status", flat=True).get(pk=task.pk)
        outcome = f"priority {priority}" if won else f"nothing changed; {status}"
        record_action(request, "set_task_priority", task, won=won, outcome=outcome)
    if won:
        return answer(request, _("Its priority is %(priority)d.") % {"priority": priority}, back=back)
    if status in FINAL:
        return answer(request, _("It has ended: a priority means nothing to it."), back=back, level="warning")
    return answer(request, _("It has that priority already."), back=back, level="info")


def _priority(text: str) -> int | None:
    try:
        value = int(text.strip()[:5])
    except ValueError:
        return None
    return value if LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY else None
