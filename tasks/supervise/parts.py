"""The parts of ``manage.py up``: demo, web and workers, as production runs them too."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from tasks.supervise.part import Part

DEMO_READY = "demo: ready"


class Heard:
    """Passes the demo's lines on and notes when it says that it works."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.ready = False
        self._say = say

    def __call__(self, line: str) -> None:
        """One line of its standard output."""
        self.ready = self.ready or line.strip() == DEMO_READY
        self._say(line)


def make_parts(data_dir: Path, door: socket.socket, demo: Heard | None) -> list[Part]:
    """The parts in the order in which they stop: the doors and the workers, which drain, then what these call.

    ``door``: the socket on which the web process listens.
    """
    environment = {**os.environ, "REDRIVE_DATA_DIR": str(data_dir), "PYTHONUNBUFFERED": "1"}
    root: Path = settings.BASE_DIR
    manage = [sys.executable, str(root / "manage.py")]
    web = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--fd", str(door.fileno())]
    web += ["--timeout-graceful-shutdown", "3", "--no-access-log", "--log-level", "warning"]
    parts = [
        # Killed at once should we be killed, so that its port is free for the next start.
        Part("web", web, environment, root, patience=6, last_signal=signal.SIGKILL, inherits=[door.fileno()]),
        Part("workers", [*manage, "qcluster"], environment, root, patience=settings.REDRIVE_DRAIN_SECONDS + 10),
    ]
    if demo:
        # Last: the workers' calls under way go to its provider, and shall end well.
        parts.append(Part("demo", [*manage, "demo"], environment, root, patience=5, heard=demo, stops_last=True))
    return parts
