"""A running attempt that tells nothing any more: no token, no progress."""

from __future__ import annotations

import asyncio

from tasks.engine.context import Progress


class Stall:
    """While entered, ends ``limit`` once nothing was told for ``seconds`` (None: never). ``seen``: that it did.

    Telling costs no more than a note of the time: the one timer looks at it when it is due, and waits for the rest.
    """

    def __init__(self, progress: Progress, seconds: float | None, limit: asyncio.Timeout) -> None:
        self.seen = False
        self._progress, self._seconds, self._limit = progress, seconds, limit
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        if self._seconds is not None:
            self._look_at(asyncio.get_running_loop().time() + self._seconds)

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look_at(self, when: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(when, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        due = self._progress.at + (self._seconds or 0.0)
        if due > loop.time():
            self._look_at(due)
        elif not self._limit.expired():
            self.seen = True
            self._limit.reschedule(loop.time())
