"""Something between a cluster and PostgreSQL: it listens in a thread of its own, and carries as its kind does."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

DEADLINE = 20.0
#: Bytes read at a time.
PIECE = 65_536


class Between:
    """A context manager; ``through`` gives the URL that leads through it. ``carry`` is for each kind to say."""

    def __init__(self) -> None:
        self.target = ("", 0)
        self.port = 0
        self.loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=type(self).__name__.lower(), daemon=True)

    def through(self, url: str) -> str:
        """The URL to the same database through this."""
        parts = conninfo_to_dict(url)
        self.target = (str(parts["host"]), int(str(parts["port"])))
        return make_conninfo(url, host="127.0.0.1", port=self.port)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its beginning to its end."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(DEADLINE):
            raise RuntimeError(f"the {self._thread.name} did not start")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(DEADLINE)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.carry, "127.0.0.1", 0, backlog=256))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self.loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.close()
