"""Work on the database that the sentinel orders but never does itself: each errand is a short-lived process.

The guard must not wait (a blocked guard replaces nobody), must not hold a connection while it forks, and must not have
threads. A process of its own gives all three, and may be killed at any moment.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from tasks.engine.process import Child, Target

logger = logging.getLogger(__name__)

#: An errand that takes longer (a database that does not answer) is killed.
LIMIT_SECONDS = 45.0
RETRY_SECONDS = 1.0
RETRY_LIMIT_SECONDS = 10.0
#: Deaths kept for writing down. More than that while the database is away: their leases run out meanwhile anyway.
KEPT_DEATHS = 1_000


class Errand:
    """At most one process at a time that runs ``target`` and says by its exit code whether it went well."""

    def __init__(self, name: str, target: Target, limit_seconds: float = LIMIT_SECONDS) -> None:
        self._name = name
        self._target = target
        self._limit = limit_seconds
        self._child: Child | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a process was started and its end not yet asked for."""
        return self._child is not None

    def start(self, args: Sequence[Any] = ()) -> bool:
        """Start it unless one is under way; whether it was started."""
        if self._child is not None:
            return False
        child = Child(self._target, args, name=self._name)
        try:
            child.start()
        except OSError as error:
            logger.error("No process could be started for %s: %s", self._name, error)
            return False
        self._child = child
        return True

    def ended(self) -> int | None:
        """The exit code of one that has ended, told once; None while it runs or where there is none."""
        child = self._child
        if child is None:
            return None
        if child.is_alive():
            if time.monotonic() - child.started_at < self._limit:
                return None
            logger.error("%s took longer than %.0f s and is stopped.", self._name, self._limit)
            child.destroy()
        self._child = None
        return child.exitcode if child.exitcode is not None else -1

    def abandon(self) -> None:
        """Kill the one under way, if any."""
        if self._child is not None:
            self._child.destroy()
            self._child = None


class Deaths:
    """The deaths that the sentinel saw, kept until an errand has written them to the database.

    ``write``: called in the errand's process with the cluster and a list of (process id, exit code).
    """

    def __init__(self, cluster: str, write: Target) -> None:
        self._cluster = cluster
        self._errand = Errand("deaths", write)
        self._waiting: deque[tuple[int, int]] = deque(maxlen=KEPT_DEATHS)
        self._sent: list[tuple[int, int]] = []
        self._retry_at = 0.0
        self._failures = 0

    def note(self, pid: int, exit_code: int) -> None:
        """Remember one death."""
        self._waiting.append((pid, exit_code))

    @property
    def are_being_written(self) -> bool:
        """Whether some are on their way into the database, as far as that is known to be there."""
        return not self._failures and (bool(self._waiting) or self._errand.is_under_way)

    def tend(self) -> None:
        """Once a round: take the answer of the errand under way, and send the next one when there is something."""
        if (code := self._errand.ended()) is not None:
            self._settle(code)
        if self._waiting and not self._errand.is_under_way and time.monotonic() >= self._retry_at:
            batch = list(self._waiting)
            if self._errand.start((self._cluster, batch)):
                self._sent = batch
                self._waiting.clear()

    def _settle(self, code: int) -> None:
        if code == 0:
            self._failures = 0
        else:
            self._failures += 1
            self._waiting.extendleft(reversed(self._sent))
            self._retry_at = time.monotonic() + min(RETRY_SECONDS * self._failures, RETRY_LIMIT_SECONDS)
        self._sent = []

    def abandon(self) -> None:
        """Leave what is not written: leases run out by themselves."""
        self._errand.abandon()
