"""Start a long-running program as a child that does not outlive us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tasks.embedded.account import Account

TETHER = Path(__file__).with_name("tether.py")


def spawn(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    account: Account | None = None,
    last_signal: signal.Signals = signal.SIGTERM,
    inherits: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start ``argv`` in a session of its own, so that Ctrl-C reaches only us and we stop our children in order.

    ``last_signal`` is what the kernel sends the child when we end without stopping it (Linux). It follows the thread
    that starts the child, so a child started outside the main thread is left untethered rather than be stopped when
    that thread is done. ``inherits``: file descriptors that it is given, beside the usual three.
    """
    tethered = threading.current_thread() is threading.main_thread()
    owner = [account.uid, account.gid] if account else [-1, -1]
    words = [os.getpid(), int(last_signal) if tethered else 0, *owner]
    return subprocess.Popen(  # noqa: S603 - our own words, no shell
        [sys.executable, "-I", "-S", str(TETHER), *(str(word) for word in words), *argv],
        env=dict(environment) if environment is not None else None,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        pass_fds=inherits,
    )
