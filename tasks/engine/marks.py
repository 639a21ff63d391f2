"""What a worker process and the database tell each other of the attempts under way, twice a second."""

from __future__ import annotations

import asyncio
import logging

from django.db import DatabaseError

from tasks.engine.database import DatabaseThread
from tasks.engine.identity import Identity
from tasks.engine.runner import Abort
from tasks.engine.slots import Slots
from tasks.lifecycle import exchange, keep_log

logger = logging.getLogger(__name__)
#: A cancel is to end the call within a second of the request.
MARKS_SECONDS = 0.5


class Marks:
    """Progress and log lines out, cancel marks in."""

    def __init__(self, database: DatabaseThread, identity: Identity, slots: Slots) -> None:
        self._database = database
        self._identity = identity
        self._slots = slots

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(MARKS_SECONDS)
            if self._identity.id is not None and len(self._slots):
                self._slots.stop(Abort.CANCELLED, await self._exchange(self._identity.id))
                await self._keep_log()

    async def _exchange(self, worker_id: int) -> set[int]:
        """Store the progress that is new; the attempts that people asked to cancel."""
        progress = self._slots.take_progress()
        try:
            return await self._database.run(exchange, worker_id, progress)
        except DatabaseError as error:
            logger.warning("Progress and cancel marks could not be exchanged (%s); trying again.", error)
            self._slots.untake_progress(attempt_id for _, attempt_id in progress)
        return set()

    async def _keep_log(self) -> None:
        """Store the lines that are new. Where that fails, the next time or the end of the attempt brings them again."""
        lines = self._slots.log_lines()
        if not lines:
            return
        try:
            await self._database.run(keep_log, lines)
        except DatabaseError as error:
            logger.warning("%d log lines could not be stored (%s); trying again.", len(lines), error)
        else:
            self._slots.log_stored(lines)
