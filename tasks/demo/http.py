"""The server side of HTTP/1.1 over asyncio streams: what the simulated provider needs, and able to break off anywhere.

A framework would finish, buffer or tidy up the very things that have to be broken here: a connection reset before the
first byte, a body cut in its middle, a client that left. Requests are read one after the other; pipelined bytes wait.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 16 * 1024 * 1024
READ_BYTES = 64 * 1024
#: How a lost client shows.
LOST = (ConnectionError, TimeoutError)


class Malformed(Exception):
    """The bytes are no request this server takes; ``status`` is the answer they deserve."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Ended(Exception):
    """The client closed its side before the request was whole."""


@dataclass(frozen=True)
class Request:
    """One whole request; header names are in lower case, the path keeps its query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """One client. All reading goes through one buffer, so that waiting for the client to leave loses no byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = bytearray()
        self.bytes_sent = 0
        # Above zero, drain() returns while bytes still wait in this process: "answered" would be a guess.
        writer.transport.set_write_buffer_limits(high=0)

    async def request(self) -> Request | None:
        """The next request, or None once the client has closed between two of them.

        Raises Malformed, Ended (closed in the middle) and ConnectionError (reset).
        """
        try:
            head = await self._until(b"\r\n\r\n")
        except Ended:
            if self._buffer:
                raise
            return None
        method, path, headers = parse_head(head)
        if headers.get("expect", "").lower() == "100-continue":
            await self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return Request(method, path, headers, await self._body(headers))

    async def gone(self) -> None:
        """Returns when the client has closed its side or was lost."""
        try:
            while await self._fill():
                if len(self._buffer) > MAX_HEAD_BYTES + MAX_BODY_BYTES:
                    return
        except LOST:
            return

    async def write(self, data: bytes) -> None:
        """Hands all of ``data`` to the kernel. Raises ConnectionError when the client has gone."""
        self._writer.write(data)
        await self._writer.drain()
        self.bytes_sent += len(data)

    async def close(self) -> None:
        """An orderly end (FIN)."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except LOST:
            return

    def reset(self) -> None:
        """An end without manners (RST): the client's read fails with "connection reset by peer"."""
        handle = self._writer.get_extra_info("socket")
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def abort(self) -> None:
        """An end that waits for nothing still unsent."""
        self._writer.transport.abort()

    async def _fill(self) -> bool:
        chunk = await self._reader.read(READ_BYTES)
        self._buffer += chunk
        return bool(chunk)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    async def _until(self, mark: bytes) -> bytes:
        while (end := self._buffer.find(mark)) < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise Malformed(431, "The head of the request is too large.")
            if not await self._fill():
                raise Ended
        taken = self._take(end + len(mark))
        return taken[:end]

    async def _exactly(self, size: int) -> bytes:
        if size > MAX_BODY_BYTES:
            raise Malformed(413, "The body of the request is too large.")
        while len(self._buffer) < size:
            if not await self._fill():
                raise Ended
        return self._take(size)

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return await self._chunked_body()
        return await self._exactly(_size(headers.get("content-length", "0"), 10))

    async def _chunked_body(self) -> bytes:
        body = bytearray()
        while size := _size((await self._until(b"\r\n")).decode("latin-1").partition(";")[0], 16):
            body += await self._exactly(size)
            if len(body) > MAX_BODY_BYTES:
                raise Malformed(413, "The body of the request is too large.")
            await self._until(b"\r\n")
        while await self._until(b"\r\n"):
            pass  # Trailers end with an empty line.
        return bytes(body)


def parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    """Method, path and headers of a request's head (without its empty line). Raises Malformed."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Malformed(400, "The request line cannot be read.")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise Malformed(400, "A header line cannot be read.")
        headers[name.strip().lower()] = value.strip()
    return words[0], words[1], headers


def head_bytes(status: int, headers: Mapping[str, str]) -> bytes:
    """The status line and headers of a response. Unregistered statuses (529) get a phrase of their own."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Overloaded" if status == 529 else "Unknown"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def chunk_bytes(data: bytes) -> bytes:
    """One chunk of a body in chunked coding; an empty one ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _size(text: str, base: int) -> int:
    try:
        size = int(text.strip(), base)
    except ValueError:
        size = -1
    if size < 0:
        raise Malformed(400, "The length of the body cannot be read.")
    return size
