"""The standard output of a child, read line by line without ever waiting for it."""

from __future__ import annotations

import os
from typing import IO


class Output:
    """Reads what has arrived on a pipe."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._partial = b""
        os.set_blocking(pipe.fileno(), False)

    def lines(self) -> list[str]:
        """The complete lines that arrived since the last call, without their ends."""
        *complete, self._partial = (self._partial + self._read()).split(b"\n")
        return [line.decode(errors="replace").rstrip("\r") for line in complete]

    def close(self) -> None:
        """Close our end."""
        self._pipe.close()

    def _read(self) -> bytes:
        read = b""
        while True:
            try:
                more = os.read(self._pipe.fileno(), 65_536)
            except BlockingIOError:
                return read
            if not more:
                return read
            read += more
