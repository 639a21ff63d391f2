"""How a worker process comes to its tasks: it claims while it has room, and hands back what it cannot be sure of."""

from __future__ import annotations

import asyncio
import logging
import random

from django.db import DatabaseError

from tasks.engine import registry
from tasks.engine.database import DatabaseThread
from tasks.engine.identity import Identity
from tasks.engine.saver import Saver
from tasks.engine.slots import Slots
from tasks.engine.snapshot import Job, Jobs, Versions, claim_jobs
from tasks.lifecycle import End, strays
from tasks.states import Outcome

logger = logging.getLogger(__name__)
POLL_SECONDS = 1.0
RETRY_SECONDS = 0.5
#: Until a claim looks again at limits that another claim held.
BUSY_SECONDS = 0.05


class Claimer:
    """Fills the free slots until ``stop`` is set.

    ``unsure``: whether something may have been claimed that was never started, until that is handed back.
    """

    def __init__(
        self, database: DatabaseThread, identity: Identity, slots: Slots, saver: Saver, stop: asyncio.Event
    ) -> None:
        self.unsure = False
        self._database = database
        self._identity = identity
        self._slots = slots
        self._saver = saver
        self._stop = stop
        self._wake = asyncio.Event()
        self._backlog = False
        self._count_first = False
        self._versions = Versions()

    async def run(self) -> None:
        """Claim until told to stop."""
        while not self._stop.is_set():
            free, worker_id = self._room(), self._identity.id
            # A frozen process that wakes must hear from the database before it starts anything.
            if worker_id is None or free <= 0 or not self._identity.is_fresh:
                await self._rest()
                continue
            claims = await self._claim(worker_id, free)
            for job in claims.jobs:
                self._start(job, worker_id)
            full = len(claims.jobs) == free
            self._backlog, self._count_first = full or claims.limited, claims.counted
            if claims.busy:
                # Not in step with the other claims, or they would meet each time.
                await pause(self._stop, BUSY_SECONDS * (1 + random.random()))  # noqa: S311 - no secret
            elif not full:
                await self._rest()

    def wake(self) -> None:
        """Look for ready tasks now."""
        self._wake.set()

    def freed(self) -> None:
        """A slot is free again: look at once where more was ready than had room."""
        if self._backlog:
            self.wake()

    async def hand_back_strays(self, worker_id: int) -> None:
        """Give the saver to hand back what was claimed under this identity and is not under way."""
        known = self._slots.attempts() | self._saver.attempts()
        for task_id, attempt_id in await self._database.run(strays, worker_id, known):
            end = End(task_id=task_id, attempt_id=attempt_id, outcome=Outcome.INTERRUPTED, started=False)
            self._saver.put(worker_id, end)
        self.unsure = False

    def _room(self) -> int:
        """How many tasks to claim: the free slots, unless what has ended cannot be stored.

        What runs counts, too, as its end may come to wait behind the others.
        """
        return min(self._slots.free, 2 * self._slots.count - len(self._saver) - len(self._slots))

    async def _claim(self, worker_id: int, free: int) -> Jobs:
        try:
            if self.unsure:
                await self.hand_back_strays(worker_id)
            return await self._database.run(
                claim_jobs, worker_id, free, registry.names(), self._versions, count_first=self._count_first
            )
        except DatabaseError as error:
            logger.warning("The claim failed (%s); trying again.", error)
        except Exception:
            logger.exception("The claim failed; trying again.")
        # It may have been committed all the same: what it took is handed back before the next one.
        self.unsure = True
        await pause(self._stop, RETRY_SECONDS)
        return Jobs([])

    def _start(self, job: Job, worker_id: int) -> None:
        if self._stop.is_set() or worker_id != self._identity.id or not self._identity.is_fresh:
            # Asked to stop, frozen, or declared lost, between the claim and here: it is for others to run.
            self.unsure = True
            return
        self._slots.start(job, worker_id)

    async def _rest(self) -> None:
        """Wait for a wake-up, at most one polling interval."""
        try:
            async with asyncio.timeout(POLL_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait, but not past a stop."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass
