"""The console's own documentation."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from tasks import access
from tasks.metric_names import FAMILIES
from tasks.states import Outcome, Reason, Status

PAGES = {
    "words": (_("Words and statuses"), _("What task, attempt, cycle, snooze, hold and the rest mean.")),
    "handlers": (_("A handler of your own"), _("From an empty folder to a task that asks a model, step by step.")),
    "commands": (_("Settings, commands, addresses"), _("How to run, configure and submit.")),
    "api": (_("HTTP API and metrics"), _("How programs submit tasks, follow them, and read figures.")),
    "django-q": (_("Coming from django-q2"), _("What async_task and schedules become, and what is different.")),
    "pgbouncer": (_("PgBouncer"), _("Transaction mode, and how workers are woken past it.")),
    "keys": (_("Keys"), _("What the keyboard does here.")),
}


@access.page
def help_index(request: HttpRequest) -> HttpResponse:
    """All pages."""
    return render(request, "help/index.html", {"pages": PAGES})


@access.page
def help_page(request: HttpRequest, name: str) -> HttpResponse:
    """One page."""
    if name not in PAGES:
        raise Http404
    context = {
        "title": PAGES[name][0],
        "statuses": list(Status),
        "outcomes": list(Outcome),
        "reasons": list(Reason),
        "settings": settings,
        "metrics": FAMILIES,
    }
    return render(request, f"help/{name}.html", context)
