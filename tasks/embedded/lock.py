"""An exclusive lock on a file, let go by the kernel however its holder ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.embedded.errors import EmbeddedError


class Locked(EmbeddedError):
    """Another process holds the lock, and held it until the time was over."""


@contextmanager
def exclusive(path: Path, *, seconds: float) -> Iterator[None]:
    """Hold the lock on ``path``; wait at most ``seconds`` for it, then raise Locked.

    ``flock`` belongs to the open file, so two threads of one process exclude each other too, and the descriptor is not
    inherited, so a server started under the lock does not keep it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor, path, time.monotonic() + seconds)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise Locked(f"Another process holds {path}.") from None
            time.sleep(0.05)
        else:
            return
