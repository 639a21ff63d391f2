"""What processes share without a lock: a process killed inside a lock would leave it taken for ever.

Both values live in shared memory that a fork inherits; each is one aligned machine word, written whole.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from multiprocessing.sharedctypes import RawValue

#: What django-q2's guard reads in ``Timer.value``: the time is up; the worker ended to be replaced.
EXPIRED = 0.0
RECYCLED = -2.0
#: A process that has not reached its event loop yet gets at least this long (imports, its first connection).
START_SECONDS = 60.0


class Timer:
    """The watchdog of one worker process, in the shape that django-q2's guard expects of ``process.timer``.

    Holds a deadline of the monotonic clock, which all processes of a machine share. The worker's event loop moves it
    forward with ``feed`` at least once a second; once it has passed, ``value`` is 0 and the guard replaces the process.

    ``seconds``: how long the event loop may be blocked.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = RawValue("d", 0.0)
        self.grant(max(seconds, START_SECONDS))

    def feed(self) -> None:
        """The event loop is alive: give it the whole time again."""
        self._deadline.value = time.monotonic() + self._seconds

    def recycle(self) -> None:
        """The last act of a worker that ends to be replaced by a fresh one."""
        self._deadline.value = RECYCLED

    def grant(self, seconds: float | None = None) -> None:
        """The sentinel's word: at least ``seconds`` (the whole time) from now, whatever happened before."""
        if self._deadline.value != RECYCLED:
            self._deadline.value = time.monotonic() + (self._seconds if seconds is None else seconds)

    @property
    def value(self) -> float:
        """Seconds left; 0 when they have passed; -2 for a worker that is to be recycled."""
        deadline: float = self._deadline.value
        if deadline == RECYCLED:
            return RECYCLED
        return max(deadline - time.monotonic(), EXPIRED)

    @value.setter
    def value(self, seconds: float) -> None:
        """Without effect: the guard counts down what the clock counts down by itself."""

    def get_lock(self) -> AbstractContextManager[None]:
        """No lock: the guard would wait for ever for a process that was killed while it held one."""
        return nullcontext()


class Flag:
    """One yes, set once, in place of ``multiprocessing.Event`` (whose lock a killed process can leave taken)."""

    def __init__(self) -> None:
        self._set = RawValue("b", 0)

    def set(self) -> None:
        """Say yes, for every process that shares the flag."""
        self._set.value = 1

    def is_set(self) -> bool:
        """Whether anyone has said yes."""
        return bool(self._set.value)
