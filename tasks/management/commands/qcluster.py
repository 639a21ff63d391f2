"""``manage.py qcluster``: the workers and the caretaker under their sentinel, in the foreground."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from tasks.engine.cluster import Cluster

POLL_SECONDS = 1.0


class Command(BaseCommand):
    """Runs until SIGTERM or Ctrl-C (exit code 0), or until its sentinel dies (1)."""

    help = (
        "Runs the workers. Waits for the database and for pending migrations. SIGTERM or Ctrl-C: stops claiming, lets "
        "running tasks end for REDRIVE_DRAIN_SECONDS, hands the rest back."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Refuse what cannot work, wait for what may come, then run the cluster."""
        refuse_without_secret_key()
        refuse_in_a_thread()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, leave)
        self._wait_until_ready()
        cluster = Cluster()
        self.stdout.write(f"qcluster: {settings.REDRIVE_WORKERS} workers of {settings.REDRIVE_SLOTS} slots each.")
        if not cluster.run():
            raise CommandError("qcluster ends because its sentinel died. Its tasks are safe; start it again.")

    def _wait_until_ready(self) -> None:
        said = ""
        while sentence := why_not_ready():
            if sentence != said:
                self.stdout.write(sentence)
                self.stdout.flush()
            said = sentence
            time.sleep(POLL_SECONDS)


def refuse_without_secret_key() -> None:
    """Raise CommandError where SECRET_KEY is empty."""
    try:
        settings.SECRET_KEY  # noqa: B018 - reading it is the check
    except ImproperlyConfigured as error:
        raise CommandError(
            "qcluster needs SECRET_KEY. Set it to the same value as for the web process, or set REDRIVE_DATA_DIR to "
            "the data directory of 'manage.py up', which keeps one there."
        ) from error


def refuse_in_a_thread() -> None:
    """Raise CommandError outside the main thread: the kernel ties the sentinel's life to the thread that forks it."""
    if threading.current_thread() is not threading.main_thread():
        raise CommandError("qcluster must run in the main thread of its process.")


def leave(signum: int, frame: FrameType | None) -> None:
    """A stop signal while nothing runs yet: there is nothing to drain."""
    raise SystemExit(0)


def why_not_ready() -> str:
    """Why the cluster cannot start yet, as a sentence; empty when it can."""
    try:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except Error as error:
        connection.close()
        hint = " Set REDRIVE_PGBOUNCER=on." if "unsupported startup parameter" in str(error) else ""
        return f"Waiting for the database: {str(error).strip()}{hint}"
    if not plan:
        return ""
    first = plan[0][0]
    return (
        f"Waiting: {len(plan)} migrations are pending, {first.app_label}.{first.name} first. "
        "Run 'python manage.py migrate'."
    )
