"""What a tree of processes costs: CPU seconds and memory."""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType

import psutil

SAMPLE_SECONDS = 0.25
MIB = 1024 * 1024


def _members(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    return []


def cpu_seconds(pid: int) -> float:
    """User and system time of the process and of all below it that live."""
    total = 0.0
    for member in _members(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = member.cpu_times()
            total += times.user + times.system
    return total


class PeakMemory:
    """While entered, samples the proportional set size of the tree; ``mib`` is the most that was seen."""

    def __init__(self, pid: int) -> None:
        self.mib = 0.0
        self._pid = pid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._end.wait(SAMPLE_SECONDS):
            total = 0
            for member in _members(self._pid):
                with contextlib.suppress(psutil.Error):
                    total += member.memory_full_info().pss
            self.mib = max(self.mib, total / MIB)
