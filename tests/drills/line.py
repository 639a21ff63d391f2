"""A line between a cluster and PostgreSQL that fails as networks do: a TCP proxy that swallows, cuts or slows."""

from __future__ import annotations

import asyncio
import threading
from typing import Literal

from tests.between import DEADLINE, PIECE, Between

#: ``hole``: connections stay open and nothing comes through; those caught in it never work again. ``cut``: all are
#: closed, new ones too. ``slow``: each piece takes a while.
Mode = Literal["carry", "hole", "cut", "slow"]
SLOW_SECONDS = 0.2


class Line(Between):
    """As it is ``set``."""

    def __init__(self) -> None:
        super().__init__()
        self._mode: Mode = "carry"
        self._sessions: set[_Session] = set()

    def set(self, mode: Mode) -> None:
        """From now on it is like this."""
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (self._set(mode), done.set()))
        if not done.wait(DEADLINE):
            raise RuntimeError("the line does not answer")

    def _set(self, mode: Mode) -> None:
        was, self._mode = self._mode, mode
        for session in list(self._sessions):
            if mode == "cut":
                session.abort()
            elif mode == "hole":
                session.is_dead = True
            elif was == "hole":
                # The server hears at last that they are gone, and lets go of what they held.
                session.leave_server()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until one side is gone, or the line is cut."""
        session = _Session(self, reader, writer)
        self._sessions.add(session)
        try:
            await session.run(self.target)
        except OSError:
            pass
        finally:
            self._sessions.discard(session)
            session.abort()

    async def delay(self) -> None:
        """What a piece takes on its way."""
        if self._mode == "slow":
            await asyncio.sleep(SLOW_SECONDS)

    @property
    def mode(self) -> Mode:
        """How it is now."""
        return self._mode


class _Session:
    """One connection. A dead one goes on reading, as a kernel does, and carries nothing."""

    def __init__(self, line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._line = line
        self._client = (reader, writer)
        self._server: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.is_dead = line.mode == "hole"

    async def run(self, target: tuple[str, int]) -> None:
        if self._line.mode == "cut":
            return
        if self.is_dead:
            await self._pump(self._client[0], None)
            return
        self._server = await asyncio.open_connection(*target)
        out = asyncio.ensure_future(self._pump(self._client[0], self._server[1]))
        back = asyncio.ensure_future(self._pump(self._server[0], self._client[1]))
        await asyncio.wait({out, back}, return_when=asyncio.FIRST_COMPLETED)
        if self.is_dead:
            await out  # the client must find out by itself
        for way in (out, back):
            way.cancel()
        await asyncio.gather(out, back, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None) -> None:
        while data := await reader.read(PIECE):
            await self._line.delay()
            if writer is not None and not self.is_dead:
                writer.write(data)
                await writer.drain()

    def leave_server(self) -> None:
        if self.is_dead and self._server is not None:
            self._server[1].transport.abort()

    def abort(self) -> None:
        self._client[1].transport.abort()
        if self._server is not None:
            self._server[1].transport.abort()
