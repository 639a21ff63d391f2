"""``/healthz``: the web process lives. ``/readyz``: it can work, because the database answers and is up to date."""

from __future__ import annotations

import threading

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from tasks.api.problems import headers_of

#: Once this process has seen that every migration is applied; a new release is a new process.
_seen_up_to_date = threading.Event()


@require_safe
def alive(request: HttpRequest) -> HttpResponse:
    """200 as long as the process answers at all; asks nothing of the database."""
    return JsonResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})


@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """200, or 503 with Retry-After and what is missing."""
    lacking = _lacking()
    status = 503 if lacking else 200
    return JsonResponse({"status": lacking or "ok"}, status=status, headers=headers_of(status))


def _lacking() -> str:
    connection = connections[DEFAULT_DB_ALIAS]
    try:
        pending = 0 if _seen_up_to_date.is_set() else _pending(connection)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, InterfaceError):
        connection.close()
        return "the database cannot be reached"
    return f"{pending} migrations are pending" if pending else ""


def _pending(connection: BaseDatabaseWrapper) -> int:
    """How many migrations of this program are not applied. Reads all migration files: until none is left, not after."""
    executor = MigrationExecutor(connection)
    pending = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    if not pending:
        _seen_up_to_date.set()
    return pending
