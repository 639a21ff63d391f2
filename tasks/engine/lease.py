"""The lease of a process: one row it keeps alive by beating. Each call is one short statement, committed at once.

The database's clock rules: no time of this machine is ever written or compared.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from django.conf import settings
from django.db import connection

Role = Literal["worker", "caretaker"]

REGISTER = """
INSERT INTO tasks_workerprocess (role, cluster, host, pid, slots, running, handlers, reconcilers, started_at,
                                 lease_until, late_saves_refused)
VALUES (%s, %s, %s, %s, %s, 0, %s, %s, now(), now() + make_interval(secs => %s), 0)
RETURNING id
"""
BEAT = """
UPDATE tasks_workerprocess SET lease_until = now() + make_interval(secs => %s), running = %s
WHERE id = %s AND lost_at IS NULL AND stopped_at IS NULL
"""
STOP = """
UPDATE tasks_workerprocess SET stopped_at = now(), running = 0
WHERE id = %s AND lost_at IS NULL AND stopped_at IS NULL
"""
RECORD_EXIT = """
UPDATE tasks_workerprocess SET exit_seen_at = now(), exit_code = %s
WHERE cluster = %s AND pid = %s AND lost_at IS NULL AND stopped_at IS NULL AND exit_seen_at IS NULL
"""
# A gap of more than two beats, forwards or backwards (a clock that was set), starts the contact anew.
TOUCH_CONTACT = """
INSERT INTO tasks_clustercontact AS c (name, contact_since, contact_at) VALUES (%s, now(), now())
ON CONFLICT (name) DO UPDATE SET contact_at = now(), contact_since = CASE
    WHEN now() - c.contact_at BETWEEN -make_interval(secs => %s) AND make_interval(secs => %s)
    THEN c.contact_since ELSE now() END
RETURNING greatest(extract(epoch FROM now() - contact_since), 0)::float8
"""


def register(role: Role, cluster: str, slots: int, handlers: Iterable[str], reconcilers: Iterable[str] = ()) -> int:
    """Give this process a new identity with a lease; its id. A process that lost its lease calls this again.

    ``reconcilers``: the handlers that it can ask what became of vanished work.
    """
    known = [sorted(handlers), sorted(reconcilers)]
    row = [role, cluster, socket.gethostname(), os.getpid(), slots, *known, settings.REDRIVE_LEASE_SECONDS]
    return int(_one(REGISTER, row))


def beat(worker_id: int, running: int) -> bool:
    """Renew the lease and say how many tasks run. False: the lease is lost, or the process was marked stopped."""
    return _changed(BEAT, [settings.REDRIVE_LEASE_SECONDS, running, worker_id]) == 1


def stop(worker_id: int) -> bool:
    """The last word of a process that has handed everything back. False: its lease was lost before."""
    return _changed(STOP, [worker_id]) == 1


def record_exit(cluster: str, pid: int, exit_code: int) -> int:
    """Its sentinel saw the process end: its tasks need not wait for the lease. How many live rows that ended (0, 1).

    ``exit_code``: as multiprocessing gives it, negative for a signal. The row lives until it is marked lost or stopped.
    """
    return _changed(RECORD_EXIT, [exit_code, cluster, pid])


def touch_contact(name: str, beat_seconds: float) -> float:
    """Say that the cluster ``name`` has the database now; for how many seconds it has had it without a break.

    The contact starts anew when more than two beats lie between two calls, whichever process makes them.
    """
    gap = 2 * beat_seconds
    return float(_one(TOUCH_CONTACT, [name, gap, gap]))


def cluster_name(name: str, run: str) -> str:
    """What a process is registered under: this host, the configured name, and one start of its sentinel."""
    return f"{socket.gethostname()}/{name}/{run}"


def contact_name(cluster: str) -> str:
    """The name of a cluster's contact: the same for its successor, which may thus continue it."""
    return cluster.rpartition("/")[0]


def _one(statement: str, values: Sequence[Any]) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        (value,) = cursor.fetchone()
    return value


def _changed(statement: str, values: Sequence[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)
