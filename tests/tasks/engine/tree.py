"""A tree of real processes under test: started in a session of its own, so that no orphan can hide."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.cluster import BUSY_MACHINE

ROOT = Path(__file__).resolve().parents[3]
#: Nobody listens there: the tree works without a database, too.
NO_DATABASE = "postgresql://nobody@127.0.0.1:1/none"


def wait_until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first true value of ``condition``; fails after ``seconds`` and what a busy machine may add."""
    deadline = time.monotonic() + seconds + BUSY_MACHINE
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what} did not happen within {seconds} s")


class Tree:
    """One cluster of stand-ins. ``environment`` overrides the defaults (2 workers, drain 2 s, watchdog 2 s)."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.log = folder / "events.jsonl"
        self.errors = folder / "stderr"
        self.log.touch()
        defaults = {
            "DJANGO_SETTINGS_MODULE": "config.settings_test",
            "DATABASE_URL": NO_DATABASE,
            "REDRIVE_WORKERS": "2",
            "REDRIVE_DRAIN_SECONDS": "2",
            "REDRIVE_WATCHDOG_SECONDS": "2",
            "STANDIN_LOG": str(self.log),
        }
        with self.errors.open("w") as errors:
            self.main = subprocess.Popen(
                [sys.executable, "-m", "tests.tasks.engine.standins"],
                cwd=ROOT,
                env={**os.environ, **defaults, **environment},
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                start_new_session=True,
            )

    def events(self, event: str, role: str = "") -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line["event"] == event and (not role or line.get("role") == role)]

    def pids(self, role: str) -> list[int]:
        """The living processes of that role that are ready."""
        ready = {line["pid"] for line in self.events("ready", role)}
        return sorted(ready & self.members())

    @property
    def sentinel(self) -> int:
        return int(self.events("born")[-1]["ppid"])

    def members(self) -> set[int]:
        """Every living process of the session, whoever its parent is by now."""
        return {process.pid for process in psutil.process_iter() if self._is_member(process)}

    def _is_member(self, process: psutil.Process) -> bool:
        try:
            return os.getsid(process.pid) == self.main.pid and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False

    def wait_ready(self, workers: int = 2, seconds: float = 20.0) -> None:
        def ready() -> bool:
            return len(self.pids("worker")) == workers and len(self.pids("caretaker")) == 1

        try:
            wait_until(ready, seconds, f"a tree of {workers} workers and a caretaker")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.errors.read_text()}") from error

    def wait_gone(self, seconds: float) -> float:
        """Until no process of the tree is left; how long that took."""
        started = time.monotonic()
        wait_until(lambda: self.main.poll() is not None and not self.members(), seconds, "the end of every process")
        return time.monotonic() - started

    def kill(self, pid: int, number: signal.Signals = signal.SIGKILL) -> float:
        os.kill(pid, number)
        return time.monotonic()

    def destroy(self) -> None:
        for pid in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.main.wait(10)
