"""When may ``up`` say ready? When the web answers and a worker of this start has registered."""

from __future__ import annotations

import http.client
from datetime import datetime

from django.db import DatabaseError, InterfaceError, connection
from django.db.models.functions import Now

from tasks.models import WorkerProcess


def missing(host: str, port: int, since: datetime) -> str | None:
    """What is not there yet, in words, or None. Our own database connection is closed once nothing is missing."""
    if not workers_registered(since):
        return "a worker that has registered"
    if not web_answers(host, port):
        return "the web process to answer"
    connection.close()
    return None


def web_answers(host: str, port: int) -> bool:
    """Whether the web process answers a request without an error of its own."""
    client = http.client.HTTPConnection(host, port, timeout=2)
    try:
        client.request("GET", "/login/")
        return client.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()


def database_now() -> datetime:
    """The database's clock, which is the one that rules."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        now: datetime = cursor.fetchone()[0]
    return now


def workers_registered(since: datetime) -> bool:
    """Whether a worker process that started after ``since`` holds its lease.

    Rows of a system that was killed a moment ago still look alive; they are older.
    """
    live = WorkerProcess.objects.filter(lost_at=None, stopped_at=None, role="worker", lease_until__gt=Now())
    try:
        return live.filter(started_at__gte=since).exists()
    except (DatabaseError, InterfaceError):
        # The database may just be starting again; the supervisor asks once more in a moment.
        connection.close()
        return False
