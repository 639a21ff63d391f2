"""Who a worker process is at the moment: one row and its lease, over a database connection of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from django.db import DatabaseError

from tasks.engine import lease
from tasks.engine.database import DatabaseThread

logger = logging.getLogger(__name__)
#: Where the lease is short, a busy machine still gets so long to answer a heartbeat.
LEAST_LIMIT_SECONDS = 2.0


class Identity:
    """The identity of a worker process. ``id`` is None while it has none. Whose lease is lost takes a new one."""

    def __init__(self, cluster: str, slots: int, lease_seconds: float) -> None:
        self.id: int | None = None
        self._cluster = cluster
        self._slots = slots
        self._lease_seconds = lease_seconds
        self._renewed_at = float("-inf")
        # Of its own: a long save must not keep the heartbeat waiting. It tells silence before the lease has run out.
        self._database = DatabaseThread("beat", max(lease_seconds / 3, LEAST_LIMIT_SECONDS))

    @property
    def is_fresh(self) -> bool:
        """Whether the lease, as far as this process can know, still runs: what it claims is its own."""
        return self.id is not None and time.monotonic() - self._renewed_at < self._lease_seconds

    def holds(self, worker_id: int) -> bool:
        """Whether the lease of that identity, as far as this process can know, still runs."""
        return self.id == worker_id and self.is_fresh

    async def take(self, handlers: Sequence[str], reconcilers: Sequence[str] = ()) -> bool:
        """Try once to register under a new id; whether that went well."""
        asked_at = time.monotonic()
        try:
            told = ("worker", self._cluster, self._slots, handlers, reconcilers)
            self.id = await self._database.run(lease.register, *told)
        except DatabaseError as error:
            logger.warning("No database yet (%s); trying again.", error)
            return False
        self._renewed_at = asked_at
        return True

    async def beat(self, running: int) -> bool:
        """Renew the lease; False when it is lost. A database that is away proves nothing."""
        if self.id is None:
            return False
        asked_at = time.monotonic()
        try:
            alive = await self._database.run(lease.beat, self.id, running)
        except DatabaseError as error:
            logger.warning("The heartbeat failed (%s); trying again.", error)
            return True
        if alive:
            self._renewed_at = asked_at
        return alive

    async def give_up(self) -> None:
        """Say that the process stops, and close the connection. Raises DatabaseError where that cannot be said."""
        if self.id is not None:
            await self._database.run(lease.stop, self.id)
        await self._database.close()
