"""Single processes for the tests of ``tasks.engine.process``: ``python -m tests.tasks.engine.births CASE FILE``."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from tasks.engine.process import Child, die_with, watch


class SlowBirth(Child):
    """Held between the fork and the first line of its life, where the sentinel's child still ignores stop signals."""

    def run(self) -> None:
        Path(sys.argv[2]).write_text("forked")
        time.sleep(0.3)
        super().run()


def signalled_at_birth(report: Path) -> None:
    """A parent that ignores SIGTERM, as the sentinel does, signals its child in that very moment."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = SlowBirth(time.sleep, (30,), name="slow")
    child.start()
    while report.read_text() != "forked":
        time.sleep(0.01)
    child.send(signal.SIGTERM)
    child.join(5)
    held = signal.pthread_sigmask(signal.SIG_BLOCK, ()) & {signal.SIGTERM, signal.SIGINT}
    report.write_text(f"{child.exitcode} {len(held)}")
    child.destroy()


def orphan(report: Path, *, late: bool) -> None:
    """A grandchild whose parent dies: before it asks to die with it (``late``), or while it watches by itself."""
    if os.fork() == 0:
        parent = os.getpid()
        if os.fork() == 0:
            report.write_text(str(os.getpid()))
            while late and os.getppid() == parent:
                time.sleep(0.01)
            (die_with if late else watch)(parent)
            report.write_text("survived")
            os._exit(0)
        while not report.read_text():
            time.sleep(0.01)
        os._exit(0)
    os.wait()


if __name__ == "__main__":
    where = Path(sys.argv[2])
    if sys.argv[1] == "signalled":
        signalled_at_birth(where)
    else:
        orphan(where, late=sys.argv[1] == "late")
