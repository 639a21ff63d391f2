"""Stores the ends of attempts in batches. An end is kept and the save repeated until it is stored or refused."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tasks.engine.database import DatabaseThread
from tasks.engine.trouble import Trouble, trouble
from tasks.lifecycle import End, Saved, finish
from tasks.states import Outcome

logger = logging.getLogger(__name__)
#: Between two tries while the database is away.
RETRY_SECONDS = 0.5
#: Until an end is tried again whose task's row is held by somebody else.
BUSY_SECONDS = 0.2
#: Between two tries of one end that fails by itself, while the others go on.
ASIDE_SECONDS = 2.0
#: An end that fails for so long for no reason that is known, while others are stored, dies: a person shall see it.
GIVE_UP_SECONDS = 60.0
BATCH = 500
#: Texts of one batch, in characters: a statement has a limit (1 GB), and memory has one, too.
BATCH_CHARACTERS = 8 * 1024 * 1024

#: Called with (end, error) for one end that the database will not take; gives the death to store instead.
Unstorable = Callable[[End, BaseException], End]


@dataclass(slots=True)
class Kept:
    """An end that is not stored yet, and the worker identity that it belongs to. Times are monotonic."""

    worker_id: int
    end: End
    again_at: float = 0.0
    #: Since when it fails by itself.
    failing_since: float | None = None
    is_busy: bool = False
    is_given_up: bool = False


class Saver:
    """The ends to store, oldest first. Only what is stored or refused leaves it, whatever error comes in between."""

    def __init__(self, database: DatabaseThread, unstorable: Unstorable) -> None:
        self._database = database
        self._unstorable = unstorable
        self._kept: dict[int, Kept] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stored_at = float("-inf")

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, worker_id: int, end: End) -> None:
        """Take over an end; it will be stored, or refused by the fence. Of two ends of an attempt the first counts."""
        self._kept.setdefault(end.attempt_id, Kept(worker_id, end))
        self._idle.clear()
        self._wake.set()

    def attempts(self) -> set[int]:
        """The attempts whose end is not stored yet."""
        return set(self._kept)

    async def drained(self) -> None:
        """Wait until nothing is left to store."""
        await self._idle.wait()

    async def run(self) -> None:
        """Save what comes, until cancelled. What arrives during a save goes together into the next one."""
        while True:
            await self._save(await self._due())
            if not self._kept:
                self._idle.set()

    async def _due(self) -> list[Kept]:
        """Wait until something is to be saved; the next batch, all of one worker identity."""
        while not (batch := self._batch(time.monotonic())):
            self._wake.clear()
            next_at = min((kept.again_at for kept in self._kept.values()), default=None)
            with suppress(TimeoutError):
                async with asyncio.timeout(None if next_at is None else next_at - time.monotonic()):
                    await self._wake.wait()
        return batch

    def _batch(self, now: float) -> list[Kept]:
        batch: list[Kept] = []
        room = BATCH_CHARACTERS
        # What is handed back goes first: it is little, others can run it at once, and this process is about to end.
        for kept in sorted(self._kept.values(), key=lambda kept: kept.end.outcome is not Outcome.INTERRUPTED):
            if kept.again_at > now or (batch and kept.worker_id != batch[0].worker_id):
                continue
            room -= weight(kept.end)
            if batch and (room < 0 or len(batch) == BATCH):
                break
            batch.append(kept)
        return batch

    async def _save(self, batch: Sequence[Kept]) -> None:
        try:
            saved = await self._database.run(finish, batch[0].worker_id, [kept.end for kept in batch])
        except Exception as error:
            await self._failed(batch, error)
        else:
            self._settle(batch, saved)

    def _settle(self, batch: Sequence[Kept], saved: Saved) -> None:
        if saved.won:
            self._stored_at = time.monotonic()
        for kept in batch:
            if kept.end.attempt_id in saved.won | saved.refused:
                del self._kept[kept.end.attempt_id]
            else:
                self._wait_for_row(kept)
        if saved.refused:
            logger.warning("Late ends refused, their tasks belong to others by now: attempts %s", sorted(saved.refused))

    def _wait_for_row(self, kept: Kept) -> None:
        if not kept.is_busy:
            logger.warning("The end of attempt %d waits: another transaction holds its task.", kept.end.attempt_id)
        kept.is_busy = True
        kept.again_at = time.monotonic() + BUSY_SECONDS

    async def _failed(self, batch: Sequence[Kept], error: Exception) -> None:
        """While the database is away all wait. Else the batch is halved until the bad end is found."""
        what = trouble(error)
        if what is Trouble.AWAY:
            logger.warning("Could not store %d ends (%s); they are kept and tried again.", len(batch), error)
            await asyncio.sleep(RETRY_SECONDS)
        elif len(batch) > 1:
            middle = len(batch) // 2
            await self._save(batch[:middle])
            await self._save(batch[middle:])
        else:
            self._put_aside(batch[0], error, what)

    def _put_aside(self, kept: Kept, error: Exception, what: Trouble) -> None:
        """One end that fails by itself: it dies as unstorable where no other try can help, else it is tried again.

        A death that cannot be stored either is not given up: its task stays running, and the log says why.
        """
        now, attempt = time.monotonic(), kept.end.attempt_id
        if kept.failing_since is None:
            kept.failing_since = now
        if kept.is_given_up or not self._is_hopeless(kept.failing_since, what, now):
            logger.error("The end of attempt %d could not be stored; it is tried again.", attempt, exc_info=error)
            kept.again_at = now + ASIDE_SECONDS
            return
        logger.error("The end of attempt %d cannot be stored; its task dies.", attempt, exc_info=error)
        kept.end = self._unstorable(kept.end, error)
        kept.is_given_up = True

    def _is_hopeless(self, since: float, what: Trouble, now: float) -> bool:
        """Where nothing else can be stored either, the fault is not this end's: what it holds has been paid for."""
        if what is Trouble.OTHER:
            return now - since > GIVE_UP_SECONDS and self._stored_at > since
        return what is Trouble.VALUE


def weight(end: End) -> int:
    """About how many characters of text storing it takes."""
    calls = end.usage.calls
    said = sum(len(message.get("content") or "") for call in calls for message in call["messages"])
    answered = sum(len(call["answer"]) for call in calls)
    return len(end.result_text or "") + said + answered + sum(len(line.text) for line in end.log)
