"""What a handler writes with ``ctx.log``: in order, bounded, without secrets; stored by the tick and with the end."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from threading import Lock
from typing import Any

from tasks.errors import mask_secrets
from tasks.errors.text import as_text, cut
from tasks.lifecycle import LogLine

#: Of one attempt: lines, bytes of a line, bytes of all.
MOST_LINES, LINE_BYTES, ALL_BYTES = 500, 2_000, 128 * 1024
FULL = f"No further line is kept: an attempt has room for {MOST_LINES} lines and {ALL_BYTES // 1024} KiB."

logger = logging.getLogger("tasks.handler")


class Log:
    """The lines of one attempt that are not known to be stored. Written in the event loop or in any thread."""

    def __init__(self, kind: str, task_id: object) -> None:
        """Both are named in Python's own log."""
        self._kind, self._task_id = kind, task_id
        self._lock = Lock()
        self._waiting: list[LogLine] = []
        self._count = 0
        self._room = ALL_BYTES

    def write(self, text: str, fields: Mapping[str, Any]) -> None:
        """Add a line. Never fails; says once that there is no more room."""
        if self._count > MOST_LINES:
            return
        line = cut(_line(text, fields), LINE_BYTES, clean=mask_secrets)
        with self._lock:
            self._room -= len(line.encode())
            if self._count >= MOST_LINES or self._room < 0:
                if self._count > MOST_LINES:
                    return
                line, self._count = FULL, MOST_LINES
            self._count += 1
            self._waiting.append(LogLine(seq=self._count, written=time.monotonic(), text=line))
        logger.info("%s %s: %s", self._kind, self._task_id, line)

    def waiting(self) -> list[LogLine]:
        """The lines that are not known to be stored, oldest first."""
        if not self._waiting:
            return []
        with self._lock:
            return list(self._waiting)

    def stored(self, seq: int) -> None:
        """The lines up to this number are stored."""
        with self._lock:
            self._waiting = [line for line in self._waiting if line.seq > seq]


def _line(text: Any, fields: Mapping[str, Any]) -> str:
    return "  ".join([as_text(text), *(f"{name}={_shown(value)}" for name, value in fields.items())])


def _shown(value: Any) -> str:
    """A value as it stands behind its name: JSON, but texts without blanks as they are."""
    if isinstance(value, str) and value and not any(character.isspace() or character in "\"'=" for character in value):
        return as_text(value)
    try:
        return as_text(json.dumps(value, ensure_ascii=False, default=as_text))
    except Exception:  # not JSON, or changed by another thread while it is read
        return as_text(type(value).__qualname__)
