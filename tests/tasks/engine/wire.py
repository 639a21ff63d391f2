"""A wire between a cluster and PostgreSQL that loses answers: a TCP proxy that can hold them back or drop them.

It knows just enough of the protocol to see a statement go out and to wait until the server has committed it.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.between import DEADLINE, PIECE, Between

#: ReadyForQuery outside a transaction: what came before is committed.
IDLE = b"Z\x00\x00\x00\x05I"


#: The end of an answer without rows.
NOTHING = b"SELECT 0\x00"
#: Parse and Bind of a statement that psycopg has prepared: its text goes out once, from then on only its name.
PARSE = re.compile(rb"P.{4}(_pg3_\d+)\x00([^\x00]*)\x00", re.DOTALL)
BIND = re.compile(rb"B.{4}\x00(_pg3_\d+)\x00", re.DOTALL)


class Trap:
    """Catches the answer to the last of these statements, given by a part of each, sent in this order in one session.

    An answer without rows, to any of them, is let pass. ``sprung``: the server has committed, and nobody has heard it.
    """

    def __init__(self, *statements: str, hold: bool) -> None:
        self.statements = [text.encode() for text in statements]
        self.hold = hold
        self.sprung = threading.Event()
        self.released = threading.Event()

    def wait(self) -> None:
        """Until it has caught something."""
        if not self.sprung.wait(DEADLINE):
            raise AssertionError(f"nothing like {self.statements} within {DEADLINE:g} s")


class Wire(Between):
    """A context manager; ``url`` leads through it to the database of the URL given."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._trap: Trap | None = None
        self._silent = False

    @property
    def url(self) -> str:
        """DATABASE_URL for the cluster."""
        return self.through(self._url)

    @contextmanager
    def cut(self, *statements: str) -> Iterator[Trap]:
        """Drop the answer, and the connection with it."""
        yield from self._set(Trap(*statements, hold=False))

    @contextmanager
    def held(self, *statements: str) -> Iterator[Trap]:
        """Hold the answer back until the end of the block."""
        yield from self._set(Trap(*statements, hold=True))

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Carry nothing until the end of the block; no connection is refused or closed either."""
        self._silent = True
        try:
            yield
        finally:
            self._silent = False

    async def may_carry(self) -> None:
        """Wait while it is silent."""
        while self._silent:
            await asyncio.sleep(0.02)

    def _set(self, trap: Trap) -> Iterator[Trap]:
        self._trap = trap
        try:
            yield trap
        finally:
            trap.released.set()
            self._trap = None

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Both ways until one side is gone, past the trap."""
        server_reader, server_writer = await asyncio.open_connection(*self.target)
        session = _Session(self, reader, writer, server_reader, server_writer)
        try:
            await session.run()
        finally:
            for end in (writer, server_writer):
                end.close()


class _Session:
    def __init__(
        self,
        wire: Wire,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        self.wire = wire
        self.reader, self.writer = reader, writer
        self.server_reader, self.server_writer = server_reader, server_writer
        #: How many of the trap's statements this session has sent.
        self.sent: dict[Trap, int] = {}
        self.prepared: dict[bytes, bytes] = {}

    async def run(self) -> None:
        """Carry both ways until one side is gone."""
        ways = {asyncio.ensure_future(self._out()), asyncio.ensure_future(self._back())}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _out(self) -> None:
        while data := await self.reader.read(PIECE):
            trap, said = self.wire._trap, self._said(data)
            if trap and not trap.sprung.is_set():
                seen = self.sent.get(trap, 0)
                if seen < len(trap.statements) and trap.statements[seen] in said:
                    self.sent[trap] = seen + 1
            await self.wire.may_carry()
            self.server_writer.write(data)
            await self.server_writer.drain()

    def _said(self, data: bytes) -> bytes:
        """What is executed: not what is just prepared, but the texts of the prepared statements that are named."""
        self.prepared.update(PARSE.findall(data))
        return PARSE.sub(b"", data) + b"".join(self.prepared.get(name, b"") for name in BIND.findall(data))

    async def _back(self) -> None:
        while data := await self.server_reader.read(PIECE):
            trap = self.wire._trap
            if trap and not trap.sprung.is_set() and self.sent.get(trap) == len(trap.statements):
                data = await self._whole(data)
                if NOTHING in data:
                    self.sent[trap] -= 1
                else:
                    trap.sprung.set()
                    if not trap.hold:
                        return
                    while not trap.released.is_set():
                        await asyncio.sleep(0.02)
            elif trap and not trap.sprung.is_set() and self.sent.get(trap) and NOTHING in data:
                self.sent[trap] -= 1
            await self.wire.may_carry()
            self.writer.write(data)
            await self.writer.drain()

    async def _whole(self, data: bytes) -> bytes:
        while not data.endswith(IDLE) and (more := await self.server_reader.read(PIECE)):
            data += more
        return data
