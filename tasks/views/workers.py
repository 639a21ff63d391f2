"""The processes that run tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from tasks import access
from tasks.models import WorkerProcess

MOST_ALIVE = 500
#: Processes that ended are listed this long, and no more than so many.
ENDED_FOR = timedelta(days=1)
MOST_ENDED = 25


@access.page
def workers(request: HttpRequest) -> HttpResponse:
    """The page."""
    return render(request, "tasks/workers.html", _context())


@access.page
def workers_live(request: HttpRequest) -> HttpResponse:
    """The tables, as they are now."""
    return render(request, "tasks/workers_live.html", _context())


def _context() -> dict[str, Any]:
    now = timezone.now()
    processes = WorkerProcess.objects.defer("handlers")
    alive = processes.filter(lost_at__isnull=True, stopped_at__isnull=True).order_by("cluster", "role", "pid")
    ended = processes.filter(Q(lost_at__gte=now - ENDED_FOR) | Q(stopped_at__gte=now - ENDED_FOR)).order_by("-id")
    here = list(alive[:MOST_ALIVE])
    return {
        "alive": [{"process": one, "state": "live" if one.lease_until > now else "stale"} for one in here],
        "ended": [{"process": one, "state": "lost" if one.lost_at else "stopped"} for one in ended[:MOST_ENDED]],
        "slots": sum(one.slots for one in here),
        "running": sum(one.running for one in here),
    }
