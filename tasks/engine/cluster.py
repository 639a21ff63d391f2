"""django-q2's cluster, the main process: starts the sentinel, waits, and stops it within a time that is known."""

from __future__ import annotations

import logging
import os
import signal
import time
from multiprocessing.connection import wait
from types import FrameType

from django.conf import settings
from django.db import connections
from django_q import cluster as stock

from tasks.engine.process import Child, receive_stop_signals
from tasks.engine.sentinel import KILL_AFTER_DRAIN_SECONDS, Targets, default_targets, run
from tasks.engine.timer import Flag

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
#: The sentinel kills the last process 3 s after the drain time; then it has this long to end itself.
STOP_MARGIN_SECONDS = 0.9


class Cluster(stock.Cluster):  # type: ignore[misc]  # django-q2 is untyped
    """The tree of processes: main, sentinel, workers and caretaker.

    Make it in the main thread of the process. ``targets``: what the children run, the engine's own by default.
    """

    stop_event: Flag | None
    start_event: Flag | None

    def __init__(self, targets: Targets | None = None) -> None:
        super().__init__()
        self._targets = targets or default_targets()
        self.stop_requested = False

    def sig_handler(self, signum: int, frame: FrameType | None) -> None:
        """SIGTERM and SIGINT: only a flag. Whatever is done in a handler is done in the middle of anything."""
        self.stop_requested = True

    def start(self) -> int:
        """Start the sentinel, and through it the tree; this process's id. Raises OSError when it cannot fork."""
        # A connection that a child inherits would be one socket with two owners.
        connections.close_all()
        self.stop_event, self.start_event = Flag(), Flag()
        self.sentinel = Child(
            run,
            (self.stop_event, self.start_event, self.cluster_id, self._targets),
            name="sentinel",
            daemon=False,
            keeps_signals_held=True,
        )
        self.sentinel.start()
        return os.getpid()

    def run(self) -> bool:
        """Start, and stay until a signal asks to stop; True then. False: the sentinel ended without being asked."""
        self.start()
        while not self.stop_requested and self.sentinel.is_alive():
            # No lock, and no wait that a signal cannot end: the handler's flag is seen within one poll.
            wait([self.sentinel.sentinel], POLL_SECONDS)
        if self.stop_requested:
            self.stop()
            # All is done; one more signal while the interpreter shuts down would make it look killed.
            receive_stop_signals(signal.SIG_IGN)
            return True
        logger.critical("The sentinel ended with exit code %s, and its processes with it.", self.sentinel.exitcode)
        return False

    def stop(self) -> bool:
        """Have the tree stopped: workers drain, and all is gone within the drain time and 5 s. False: it was gone."""
        if self.stop_event is None or not self.sentinel.is_alive():
            return False
        self.stop_event.set()
        deadline = time.monotonic() + settings.REDRIVE_DRAIN_SECONDS + KILL_AFTER_DRAIN_SECONDS + STOP_MARGIN_SECONDS
        while self.sentinel.is_alive() and time.monotonic() < deadline:
            wait([self.sentinel.sentinel], POLL_SECONDS)
        if self.sentinel.is_alive():
            logger.critical("The sentinel did not stop in time; it is killed, and its processes with it.")
            self.sentinel.destroy()
        self.start_event = self.stop_event = None
        return True
