"""Server-sent events read from raw bytes, however the network split them. Pure.

Not ``aiter_lines``: that splits as ``str.splitlines`` does, also at U+2028 and U+0085, which JSON may carry unescaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

DONE = b"[DONE]"
#: What a line takes in memory besides its own bytes.
LINE_BYTES = 48
_decode = json.JSONDecoder().decode


class NotJson(ValueError):
    """The data of a complete event is no JSON; the argument is that data, as text."""


class Event(NamedTuple):
    """One event: its ``event:`` name, empty for the usual ones, and its data as parsed JSON."""

    name: str
    data: Any


class EventReader:
    """Turns bytes into events; ``done`` is set once ``[DONE]`` was read, ``count`` says how many events there were.

    Lines end with LF, CRLF or CR. An event whose first data line is JSON by itself is given at once, since some servers
    leave the blank line between events out; no JSON value followed by another line is JSON, so none is given too early.
    """

    def __init__(self) -> None:
        self.done = False
        self.count = 0
        self._rest = bytearray()
        self._gathered = 0
        self._after_cr = False
        self._first = True
        self._name = ""
        self._data: list[bytes] = []

    @property
    def held(self) -> int:
        """Bytes of memory held back until a line or an event is complete."""
        return len(self._rest) + self._gathered

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that ``data`` completes. Raises NotJson."""
        for line in self._lines(data):
            event = self._line(line)
            if event is not None:
                yield event

    def close(self) -> Iterator[Event]:
        """The event of a last line without a line end, if it is complete; half a line is dropped, as it was cut."""
        last = bytes(self._rest)
        self._rest.clear()
        try:
            events = [self._line(last), self._line(b"")]
        except NotJson:
            return
        yield from filter(None, events)

    def _lines(self, data: bytes) -> list[bytes]:
        data = self._without_cr(data)
        if b"\n" not in data:
            self._rest += data
            return []
        lines = data.split(b"\n")
        if self._rest:
            lines[0] = bytes(self._rest) + lines[0]
        self._rest = bytearray(lines.pop())
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
        return lines

    def _without_cr(self, data: bytes) -> bytes:
        if self._after_cr and data:
            # A CR ended the last piece and counted as a line end; the LF of a CRLF split in two adds none.
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _line(self, line: bytes) -> Event | None:
        """Take one line; the event that it completes, if any."""
        if line.startswith(b"data:"):
            return self._take(line[6:] if line[5:6] == b" " else line[5:])
        if line.startswith(b"event:"):
            self._name = line[6:].strip().decode("utf-8", "replace")
        elif not line:
            event = self._event(b"\n".join(self._data)) if self._data else None
            self._name = ""
            return event
        return None

    def _take(self, data: bytes) -> Event | None:
        if self._data:
            self._gather(data)
        elif data.strip() == DONE:
            self.done = True
        elif data.strip():
            try:
                return self._event(data)
            except NotJson:
                self._gather(data)
        return None

    def _gather(self, data: bytes) -> None:
        self._data.append(data)
        self._gathered += len(data) + LINE_BYTES

    def _event(self, data: bytes) -> Event:
        self._data, self._gathered = [], 0
        try:
            value = _decode(data.decode())
        except (ValueError, RecursionError) as error:
            raise NotJson(data.decode("utf-8", "replace")) from error
        self.count += 1
        name, self._name = self._name, ""
        return Event(name, value)
