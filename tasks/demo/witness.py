"""The provider's own record of what it was asked and what it answered: the witness of the kill drill.

One JSON object a line, each written by a single ``write`` on a descriptor opened with O_APPEND: lines of several
processes do not mix, and what was written survives the death of the writer.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


class Witness:
    """Writes events to ``path`` (made if missing), or nowhere when it is None."""

    def __init__(self, path: Path | None = None) -> None:
        self._descriptor = None if path is None else os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def note(self, event: str, **fields: Any) -> None:
        """Appends one event with the wall clock and the monotonic clock, both in nanoseconds.

        Raises OSError when the line could not be written whole: a witness with gaps must not go on.
        """
        if self._descriptor is None:
            return
        line = {"event": event, "wall_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns(), **fields}
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        if os.write(self._descriptor, data) != len(data):
            raise OSError(f"The line {data!r} was written in part only.")

    def close(self) -> None:
        """Closes the file; later notes go nowhere."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events of a log, oldest first."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]
