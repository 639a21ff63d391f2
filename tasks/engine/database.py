"""A thread that owns one database connection: the event loop never waits for PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import OperationalError, connection

from tasks.engine.silence import LIMIT_SECONDS, LOOK_SECONDS, Silence
from tasks.engine.trouble import Trouble, trouble

T = TypeVar("T")
# What is planned once must fit also when the tables are a thousand times as large. And where there is no index, what
# PostgreSQL adds to the cost of such a plan would have it compiled each time.
PLANS = " -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off"


class DatabaseThread:
    """Runs functions one after the other on Django's connection of its thread, which it keeps open."""

    def __init__(self, name: str, limit_seconds: float = LIMIT_SECONDS) -> None:
        """``limit_seconds``: how long an answer of the database may take before it is cut off, to begin with."""
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name, initializer=_find_by_index)
        self._silence = Silence(limit_seconds)
        self._watch: asyncio.TimerHandle | None = None

    async def run(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """``function(*args, **kwargs)`` in the thread. A broken connection is closed, and the error raised.

        Whatever error it was that broke the connection, it is raised as an OperationalError then; so is silence.
        """
        loop = asyncio.get_running_loop()
        if self._watch is None:
            self._look(loop)
        return await loop.run_in_executor(self._executor, lambda: self._call(function, args, kwargs))

    def _call(self, function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        with self._silence:
            return _call(function, args, kwargs)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._silence.look()
        self._watch = loop.call_later(LOOK_SECONDS, self._look, loop)

    async def close(self) -> None:
        """Close the connection and end the thread, once what it was given is done."""
        if self._watch is not None:
            self._watch.cancel()
        await asyncio.get_running_loop().run_in_executor(self._executor, lambda: connection.close())
        self._executor.shutdown(wait=False)


def _find_by_index() -> None:
    """For this thread's own connection: those of handlers, in other threads, plan as they always do.

    Where no session options are sent, as to PgBouncer, nothing is planned ahead either.
    """
    options = connection.settings_dict["OPTIONS"]
    if "options" in options:
        known = {**options, "options": options["options"] + PLANS}
        connection.settings_dict = {**connection.settings_dict, "OPTIONS": known}


def _call(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    try:
        return function(*args, **kwargs)
    except Exception as error:
        if trouble(error) is Trouble.AWAY:
            connection.close()
        elif _is_broken():
            connection.close()
            raise OperationalError(f"The connection to the database broke: {error}") from error
        raise


def _is_broken() -> bool:
    """Whether the connection died under the statement, whatever the error says of itself."""
    return connection.connection is not None and bool(connection.connection.closed)
