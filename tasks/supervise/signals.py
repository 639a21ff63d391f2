"""Ctrl-C, SIGTERM and SIGHUP: the first asks to stop, the second to hurry."""

from __future__ import annotations

import os
import select
import signal
import weakref
from types import FrameType, TracebackType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Until it is tried again to raise what could not be raised at the moment.
AGAIN_SECONDS = 0.02


class StopRequested(BaseException):
    """Raised where a signal arrives while the system is still being prepared. Not an Exception: nothing swallows it."""


class StopSignals:
    """While entered, counts the signals that stop us and wakes ``wait`` for these and for the death of a child.

    Until ``calm`` is called a signal raises StopRequested, so that preparation ends at once. Not in the middle of a
    finalizer, which would swallow it; a moment later then.
    """

    def __init__(self) -> None:
        self.count = 0
        self._raising = True

    def __enter__(self) -> StopSignals:
        self._wake, wakeup = os.pipe()
        for end in (self._wake, wakeup):
            os.set_blocking(end, False)
        self._wakeup = wakeup
        self._old_wakeup = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        # Under nohup the hang-up stays ignored. Ctrl-C does not: a shell script ignores it for all it runs with "&".
        caught = [n for n in STOPPING if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
        self._old = {number: signal.signal(number, self._stop) for number in caught}
        # A handler of any sort makes the death of a child end the wait.
        self._old[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._old[signal.SIGALRM] = signal.signal(signal.SIGALRM, lambda number, frame: self._interrupt(frame))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._old.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.close(self._wake)
        os.close(self._wakeup)

    @property
    def stop(self) -> bool:
        """Whether we were asked to stop."""
        return self.count > 0

    @property
    def hurry(self) -> bool:
        """Whether we were asked again."""
        return self.count > 1

    def calm(self) -> None:
        """From now on a signal is only counted."""
        self._raising = False

    def wait(self, seconds: float) -> None:
        """Sleep until a signal arrives, at most ``seconds``."""
        ready, _, _ = select.select([self._wake], [], [], seconds)
        if ready:
            while _drain(self._wake):
                continue

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self._interrupt(frame)

    def _interrupt(self, frame: FrameType | None) -> None:
        if not self._raising:
            return
        if _swallows(frame):
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
            return
        self._raising = False
        raise StopRequested


def _swallows(frame: FrameType | None) -> bool:
    """Whether Python would drop, with a traceback on the terminal, what is raised here: a finalizer is under way."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename == weakref.__file__:
            return True
        # The import system lets its locks go in a callback of a weak reference.
        if code.co_name == "cb" and code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _drain(descriptor: int) -> bool:
    try:
        return bool(os.read(descriptor, 4096))
    except BlockingIOError:
        return False
