"""Lines of a file or pipe as they arrive: never all of it in memory, nor held back while nothing more comes."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from dataclasses import dataclass

READ_BYTES = 256 * 1024
#: Longest line that is read: a payload of 1 MiB fits, however it is escaped (\\u0041 is six bytes for one).
MAX_LINE_BYTES = 8 * 1024 * 1024
#: How long a pipe may be silent before the lines at hand are handed on.
PATIENCE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end. ``data`` is None where it was too long to be kept; ``number`` counts from 1."""

    number: int
    data: bytes | None


def read_lines(descriptor: int) -> Iterator[list[Line]]:
    """The lines of an open file descriptor, in portions.

    A portion ends when about ``READ_BYTES`` were read, or when nothing more comes at the moment; so a program that
    writes one line and waits for its id gets it.
    """
    splitter = _Splitter()
    lines: list[Line] = []
    size = 0
    while True:
        if lines and (size >= READ_BYTES or not _more_at_once(descriptor)):
            yield lines
            lines, size = [], 0
        data = os.read(descriptor, READ_BYTES)
        if not data:
            break
        size += len(data)
        lines += splitter.feed(data)
    lines += splitter.close()
    if lines:
        yield lines


def _more_at_once(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], PATIENCE_SECONDS)[0])


class _Splitter:
    """Cuts bytes at line feeds; of a line that grows too long only the number is kept."""

    def __init__(self) -> None:
        self._number = 0
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[Line]:
        """The lines that ``data`` completes."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._hold(end)
            lines.append(self._line())
        self._hold(rest)
        return lines

    def close(self) -> list[Line]:
        """The last line, where the file does not end in a line feed."""
        return [self._line()] if self._size else []

    def _hold(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= MAX_LINE_BYTES:
            self._parts.append(data)
        else:
            self._parts.clear()

    def _line(self) -> Line:
        self._number += 1
        data = b"".join(self._parts) if self._size <= MAX_LINE_BYTES else None
        self._parts, self._size = [], 0
        return Line(self._number, data)
