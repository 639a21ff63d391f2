"""Child processes that leave no orphan: they die with their parent, and no stop signal is lost while one is born."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

from tasks.engine.timer import EXPIRED, RECYCLED, Timer

logger = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1
#: Seconds between two looks at the parent where the kernel does not tell of its death.
WATCH_SECONDS = 0.5
STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
#: Exit codes of a process that ended because it was asked to, or that was asked before it could listen.
CLEAN = frozenset({0, *(-number for number in STOP_SIGNALS)})
Target = Callable[..., object]


def die_with(parent: int) -> None:
    """Have this process killed when ``parent``, a process id, dies; at once when it is dead already.

    The kernel does it on Linux; elsewhere a thread looks. The kernel means the parent's *thread* that forked, so a
    parent forks from its main thread.
    """
    if not _ask_kernel():
        threading.Thread(target=watch, args=(parent,), name="parent-watch", daemon=True).start()
    # The parent may have died before the request was in place.
    _die_unless_child_of(parent)


def _ask_kernel() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0:
        return True
    logger.warning("prctl(PR_SET_PDEATHSIG) failed (errno %s); watching the parent instead.", ctypes.get_errno())
    return False


def watch(parent: int) -> None:
    """Look at the parent twice a second, for ever; die with it."""
    while True:
        _die_unless_child_of(parent)
        time.sleep(WATCH_SECONDS)


def _die_unless_child_of(parent: int) -> None:
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def _stop_signals_held() -> Iterator[None]:
    """Block the stop signals: one that comes while a child is born waits until the child has said what it does then.

    A blocked signal is kept even while it is ignored, and the sentinel ignores these.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def receive_stop_signals(how: signal.Handlers) -> None:
    """Let the stop signals through again, with ``how`` (SIG_DFL or SIG_IGN) as what they do."""
    for number in STOP_SIGNALS:
        signal.signal(number, how)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _show_name(name: str) -> None:
    """What ``ps`` and ``top`` call this process, up to 15 characters. Where there is no such file, it has no name."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)


class Child(ForkProcess):
    """One process of the tree. Start it from the parent's main thread, with no database connection open.

    ``timer``: its watchdog, for workers. ``keeps_signals_held``: the target calls ``receive_stop_signals`` itself;
    else both stop signals end the process until it handles them. ``short_lives``: how many processes in this place
    before it ended soon after their start.
    """

    def __init__(
        self,
        target: Target,
        args: Sequence[Any] = (),
        *,
        name: str,
        daemon: bool = True,
        timer: Timer | None = None,
        keeps_signals_held: bool = False,
    ) -> None:
        super().__init__(target=target, args=tuple(args), name=name, daemon=daemon)
        self.timer = timer
        self.short_lives = 0
        self.started_at = time.monotonic()
        self.ended_at: float | None = None
        self._keeps_signals_held = keeps_signals_held
        self._made_by = os.getpid()

    def start(self) -> None:
        """Fork. Raises OSError when the system has no room for another process."""
        with _stop_signals_held():
            super().start()

    def run(self) -> None:
        """In the child: tie it to its parent, take the signals, run the target. Exit code 1 on an exception."""
        die_with(self._made_by)
        _show_name(self.name)
        if not self._keeps_signals_held:
            receive_stop_signals(signal.SIG_DFL)
        try:
            super().run()
        except Exception as error:
            # Through logging, which masks secrets; multiprocessing would write the traceback to stderr as it is.
            logger.critical("%s (process %s) failed.", self.name, self.pid, exc_info=True)
            raise SystemExit(1) from error

    @property
    def is_blocked(self) -> bool:
        """Whether its event loop has been silent for longer than the watchdog allows."""
        return self.timer is not None and self.timer.value == EXPIRED

    @property
    def is_recycled(self) -> bool:
        """Whether it ended to be replaced by a fresh process."""
        return self.timer is not None and self.timer.value == RECYCLED

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process is gone."""
        if self.is_alive() and self.pid is not None:
            os.kill(self.pid, number)

    def destroy(self, seconds: float = 1.0) -> bool:
        """SIGKILL, which also ends a stopped process or a blocked event loop; whether it is gone within ``seconds``."""
        self.send(signal.SIGKILL)
        self.join(seconds)
        return not self.is_alive()
