"""Counts the processes of a drill while it runs: who was born to replace whom, and who outlived its tree."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import TracebackType

import psutil

from tests.drills.chaos import Kill
from tests.drills.rig import Rig

LOOK_SECONDS = 0.25
#: What the kernel cuts off from the moment at which a process began.
TICK_SECONDS = 0.01
#: What is replaced.
ROLES = ("worker", "caretaker")
#: What a process is called that was killed before its first lines: its parent's name.
UNNAMED = "sentinel"
#: So long after its main a process of the tree may still be seen: the kernel kills it, and takes its memory apart.
ORPHAN_SECONDS = 3.0


@dataclass(frozen=True)
class Birth:
    """A process, when it began, in seconds of the wall clock, and what it calls itself: ``worker-3``."""

    pid: int
    parent: int
    at: float
    name: str = ""

    @property
    def role(self) -> str:
        """Known from its first moment on, unlike the one that it registers with."""
        return self.name.partition("-")[0]


class Census:
    """A context manager: it looks four times a second while the block runs."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="census", daemon=True)
        #: Session (that of its main) -> when that main was first seen to be gone.
        self._ended: dict[int, float] = {}
        self._sessions: set[int] = set()
        self.births: dict[int, Birth] = {}
        self.orphans: set[int] = set()

    def __enter__(self) -> Census:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(10)

    def _work(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        now, main = time.monotonic(), self._rig.cluster.process
        self._sessions.add(main.pid)
        for session in self._sessions:
            if session != main.pid or main.poll() is not None:
                self._ended.setdefault(session, now)
        for pid in psutil.pids():
            try:
                self._register(pid, now)
            except (psutil.Error, ProcessLookupError):
                continue

    def _register(self, pid: int, now: float) -> None:
        session = os.getsid(pid)
        if session not in self._sessions:
            return
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return
        # Between its fork and its first lines it is called as its parent is: asked again until it has its own name.
        if pid not in self.births or self.births[pid].role not in ROLES:
            self.births[pid] = Birth(pid, process.ppid(), began(process), process.name())
        if now - self._ended.get(session, now) > ORPHAN_SECONDS:
            self.orphans.add(pid)


def began(process: psutil.Process) -> float:
    """By the clock by which kills are noted: the kernel counts from a boot at a whole second, up to a second off."""
    off = time.time() - psutil.boot_time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return process.create_time() + off


def replacements(kills: Sequence[Kill], births: Collection[Birth], over: float) -> dict[int, float]:
    """Process id of each killed worker and caretaker -> seconds until another began in its place. Pure.

    Left out are those whose sentinel did not live long enough to do it. ``over``: when the drill was over.
    """
    seconds: dict[int, float] = {}
    taken: set[int] = set()
    killed = {kill.pid for kill in kills}
    for kill in kills:
        if kill.role not in ROLES:
            continue
        heirs = [
            birth
            for birth in births
            if birth.parent == kill.parent
            and birth.at > kill.at - TICK_SECONDS
            and birth.pid not in taken
            and (birth.role == kill.role or (birth.role == UNNAMED and birth.pid in killed))
        ]
        end = min((other.at for other in kills if other.at > kill.at and _ends(other, kill.parent)), default=over)
        heir = min(heirs, key=lambda birth: birth.at, default=None)
        if heir is not None:
            taken.add(heir.pid)
            seconds[kill.pid] = max(0.0, heir.at - kill.at)
        elif end - kill.at > ORPHAN_SECONDS:
            seconds[kill.pid] = end - kill.at
    return seconds


def _ends(other: Kill, sentinel: int) -> bool:
    """Whether that kill took the sentinel along."""
    return other.role == "main" or other.pid == sentinel
