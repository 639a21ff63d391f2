"""The list of tasks, its live rows, and cancelling those that are ticked."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django_htmx.http import push_url

from tasks import access, audit, lifecycle
from tasks.filters import TaskFilter
from tasks.models import Task
from tasks.paging import SIZE, Page, keyset
from tasks.states import Status
from tasks.views.answer import answer, reason_from
from tasks.views.limits import TooSlow, patience
from tasks.views.timing import Timing, timings
from tasks.views.why import Crew, held_back

#: New rows are counted no further.
MOST_NEW = 99
#: Most tasks that one click may cancel: a page of them, ticked by hand.
MOST_TICKED = 200
#: Statuses offered as tabs, in the order of a task's life.
TABS = (
    Status.SCHEDULED,
    Status.READY,
    Status.RUNNING,
    Status.RETRYABLE,
    Status.UNKNOWN,
    Status.SUCCEEDED,
    Status.DEAD,
    Status.CANCELLED,
)


def home(request: HttpRequest) -> HttpResponse:
    """The console begins with the tasks until there is an overview."""
    return HttpResponseRedirect(reverse("tasks"))


@access.page
def task_list(request: HttpRequest) -> HttpResponse:
    """The list; to htmx only the part below the filter bar, with the filter's own URL for the address bar."""
    wanted = TaskFilter(request.GET)
    context = _list_context(wanted, request.GET)
    partial = request.htmx and request.htmx.request_type == "partial"  # type: ignore[attr-defined]
    response = render(request, "tasks/task_list.html" if partial else "tasks/tasks.html", context)
    patch_vary_headers(response, ("HX-Request", "HX-Request-Type"))
    return push_url(response, reverse("tasks") + wanted.query) if partial else response


def _list_context(wanted: TaskFilter, params: QueryDict) -> dict[str, Any]:
    tabs = [{"status": s, "href": wanted.with_status(s), "on": s in wanted.values.get("status", [])} for s in TABS]
    context = {"filter": wanted, "tabs": tabs, "all_href": wanted.with_status(), "page": Page([]), "rows": []}
    try:
        with patience():
            page = keyset(wanted.narrow(Task.objects.for_list()), params)
            return {**context, "page": page, "rows": _dressed(page.rows)}
    except TooSlow:
        return {**context, "too_slow": True}


def _dressed(tasks: list[Task]) -> list[dict[str, Any]]:
    """Each task with its timing and what holds it back."""
    times, obstacles = timings(tasks), held_back(tasks, Crew())
    return [
        {"task": task, "timing": times.get(task.pk, Timing()), "obstacle": obstacles.get(task.pk, "")} for task in tasks
    ]


@access.page
def task_rows(request: HttpRequest) -> HttpResponse:
    """The rows that are on somebody's screen (``id``), as they are now; and how many newer ones match (after ``top``).

    A row that left the filter stays where it is, marked, until the list is loaded again; one that is gone is removed.
    """
    ids = _uuids(request.GET.getlist("id"))[: SIZE * 2]
    wanted = TaskFilter(request.GET)
    tasks = list(Task.objects.for_list().among(ids))
    context: dict[str, Any] = {"filter": wanted, "missing": set(ids) - {task.pk for task in tasks}}
    try:
        with patience():
            matching = set(wanted.narrow(Task.objects.among(ids)).values_list("pk", flat=True))
            context["new"] = _count_new(request, wanted)
    except TooSlow:
        matching = set(ids)
    context["rows"] = [{**row, "left": row["task"].pk not in matching} for row in _dressed(tasks)]
    return render(request, "tasks/task_rows.html", context)


def _count_new(request: HttpRequest, wanted: TaskFilter) -> int:
    if "fresh" not in request.GET:  # a page further back: what is new stands on the first
        return 0
    top = next(iter(_uuids([request.GET.get("top", "")])), None)
    return wanted.narrow(Task.objects.newer_than(top)).count_to(MOST_NEW)  # type: ignore[attr-defined, no-any-return]


@access.verb
def cancel_tasks(request: HttpRequest) -> HttpResponse:
    """Cancel the ticked tasks: those that wait at once, those that run by asking their workers."""
    ids = list(dict.fromkeys(_uuids(request.POST.getlist("id"))))
    reason = reason_from(request)
    if sentence := _not_cancellable(len(ids), reason):
        return answer(request, sentence, back=reverse("tasks"), level="error", status=422)
    with transaction.atomic():
        won = lifecycle.cancel(ids, actor=request.user.get_username())
        audit.record(
            request.user,
            "cancel_tasks",
            target_type="task",
            reason=reason,
            count=len(won),
            filter={"ids": [str(one) for one in ids]},
            outcome=f"{len(won)} of {len(ids)} cancelled",
        )
    sentence = ngettext("%(n)d task is cancelled", "%(n)d tasks are cancelled", len(won)) % {"n": len(won)}
    if rest := len(ids) - len(won):
        kept = ngettext("%(n)d had ended before", "%(n)d had ended before", rest) % {"n": rest}
        return answer(request, f"{sentence}; {kept}.", back=reverse("tasks"), level="warning")
    return answer(request, f"{sentence}.", back=reverse("tasks"))


def _not_cancellable(count: int, reason: str) -> str:
    """What is missing before so many tasks can be cancelled; empty where nothing is."""
    if not count:
        return _("Tick the tasks first.")
    if count > MOST_TICKED:
        return _("At most %(most)d tasks at once; these are %(count)s.") % {"most": MOST_TICKED, "count": f"{count:,}"}
    return "" if reason else _("Give a reason for cancelling them.")


def _uuids(values: list[str]) -> list[UUID]:
    """The ids among ``values``; what is none (an edited request) is dropped."""
    found = []
    for value in values:
        try:
            found.append(UUID(value))
        except ValueError:
            continue
    return found
