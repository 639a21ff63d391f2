"""A real cluster for tests: ``manage.py qcluster`` as its own process group on the test database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import psutil
import psycopg

ROOT = Path(__file__).resolve().parent.parent
DEADLINE = 30.0
#: What other tests on the same cores may add to any time that is promised. The drills measure the promises.
BUSY_MACHINE = 10.0
T = TypeVar("T")
LIVE = """
SELECT DISTINCT pid, role FROM tasks_workerprocess
WHERE lost_at IS NULL AND stopped_at IS NULL AND exit_seen_at IS NULL AND pid = ANY(%s)
"""


def wait_until(check: Callable[[], T], what: str, timeout: float = DEADLINE) -> T:
    """Ask again and again until ``check`` gives something true, which is returned.

    Fails with ``what`` after ``timeout`` seconds and what a busy machine may add.
    """
    end = time.monotonic() + timeout + BUSY_MACHINE
    while True:
        if value := check():
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout:g} s: {what}")
        time.sleep(0.05)


def end_sessions(connection: psycopg.Connection, spared: Collection[int]) -> int:
    """End all sessions of the database as an administrator would, but those of these backends; how many."""
    statement = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend' AND pid <> ALL(%s)"
    )
    return len(connection.execute(statement, [list(spared)]).fetchall())


class QCluster:
    """A context manager; at its end no process of the group is left, whatever the test did.

    ``settings``: environment variables beside DATABASE_URL. ``command``: what follows python, for tests that start it
    by an entry point of their own. ``log``: a file for what it says, instead of this process's own output.
    """

    def __init__(
        self,
        url: str,
        command: tuple[str, ...] = ("manage.py", "qcluster"),
        *,
        log: Path | None = None,
        **settings: object,
    ) -> None:
        defaults = {"REDRIVE_LEASE_SECONDS": 4, "REDRIVE_DRAIN_SECONDS": 5, "REDRIVE_SLOTS": 10, "REDRIVE_WORKERS": 2}
        chosen = {name: str(value) for name, value in {**defaults, **settings}.items()}
        self.url = url
        self.workers = int(chosen["REDRIVE_WORKERS"])
        self._command = command
        self._log = log
        self._environment = {**os.environ, **chosen, "DATABASE_URL": url, "SECRET_KEY": "only-for-tests"}
        self.process: subprocess.Popen[bytes]
        self._seen: dict[int, psutil.Process] = {}

    def start(self) -> QCluster:
        """Start it, without waiting."""
        with ExitStack() as stack:
            log = stack.enter_context(self._log.open("a")) if self._log else None
            self.process = subprocess.Popen(
                [sys.executable, *self._command],
                cwd=ROOT,
                env=self._environment,
                start_new_session=True,
                stdout=log,
                stderr=log,
            )
        return self

    def wait_ready(self) -> QCluster:
        """Wait until this run's workers and its caretaker are registered and alive."""
        wait_until(lambda: self.is_ready(), "all worker processes registered")
        return self

    def is_ready(self) -> bool:
        """Whether every process of this run holds a lease."""
        roles = [role for _, role in self._live()]
        return roles.count("worker") == self.workers and "caretaker" in roles

    def processes(self) -> list[psutil.Process]:
        """Main, sentinel, workers, caretaker: those alive, main first."""
        try:
            main = psutil.Process(self.process.pid)
            found = [main, *main.children(recursive=True)]
        except psutil.NoSuchProcess:
            found = []
        self._seen.update({process.pid: process for process in found})
        return [process for process in found if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]

    def worker_pids(self) -> list[int]:
        """Process ids of the live workers of this run."""
        return sorted(pid for pid, role in self._live() if role == "worker")

    def _live(self) -> list[tuple[int, str]]:
        """(process id, role) of this run's registered processes; asked over a connection of its own."""
        pids = [process.pid for process in self.processes()]
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(LIVE, [pids]).fetchall()

    def terminate(self, *, group: bool = False) -> None:
        """SIGTERM to main, or to the whole process group, as a service manager does it."""
        self.processes()
        (os.killpg if group else os.kill)(self.process.pid, signal.SIGTERM)

    def wait(self, timeout: float = DEADLINE) -> int:
        """The exit code of main."""
        return self.process.wait(timeout)

    def survivors(self) -> list[int]:
        """Process ids of this run that are still alive."""
        return [pid for pid, process in self._seen.items() if _is_alive(process)]

    def __enter__(self) -> QCluster:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.processes()
        for process in self._seen.values():
            if _is_alive(process):
                process.kill()
        self.process.wait(DEADLINE)
        psutil.wait_procs(list(self._seen.values()), timeout=DEADLINE)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
