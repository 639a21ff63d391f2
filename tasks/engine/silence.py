"""A database that says nothing. TCP cannot tell it from one that thinks where something on the way, a proxy, keeps the
connection open: keepalives are answered, and what is sent is taken. So whoever has waited too long cuts the connection.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from contextlib import suppress
from types import TracebackType

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger(__name__)

#: How long an answer may take. As something is asked each second, silence is noticed within 10 s; connecting, which
#: has a limit of 10 s of its own, is tried again for ever.
LIMIT_SECONDS = 8.0
#: Each cut in a row doubles the limit, so that what is slow for a reason gets through in the end.
LONGEST_SECONDS = 96.0
LOOK_SECONDS = 0.5


class Silence:
    """Watches the work of one thread on its connection: ``with silence:`` around it, ``look`` from another thread."""

    def __init__(self, limit_seconds: float = LIMIT_SECONDS) -> None:
        self._first = self._limit = limit_seconds
        self._began: float | None = None
        self._connection: BaseDatabaseWrapper | None = None

    def __enter__(self) -> None:
        self._connection = connections["default"]
        self._began = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._began = None
        if error is None:
            self._limit = self._first

    def look(self) -> None:
        """Cut the connection when the work has taken too long; what waits for it gets an OperationalError."""
        began = self._began
        if began is None or time.monotonic() - began < self._limit:
            return
        logger.warning("The database has said nothing for %.0f s; the connection is cut.", time.monotonic() - began)
        self._limit = min(2 * self._limit, LONGEST_SECONDS)
        self._began = time.monotonic()
        self._cut()

    def _cut(self) -> None:
        """Shut its socket down, which is all that another thread may do to a connection."""
        raw: psycopg.Connection | None = self._connection.connection if self._connection else None
        if raw is None:
            return  # It is being opened, which has a limit of its own.
        with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(raw.fileno())) as its:
            its.shutdown(socket.SHUT_RDWR)
