"""Asks handlers what became of work whose process vanished: beside the slots, a few at a time."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import Error

from tasks.engine import judge, registry
from tasks.engine.context import UnknownContext
from tasks.engine.database import DatabaseThread
from tasks.engine.identity import Identity
from tasks.engine.registry import Handler
from tasks.engine.threads import call
from tasks.engine.trouble import Trouble, trouble
from tasks.engine.truth import Report
from tasks.errors import AttemptTimeout, Catalogue
from tasks.lifecycle import Answer, Asked, answer, ask, renew
from tasks.lifecycle.clean import Unstorable, storable_result
from tasks.states import Truth

logger = logging.getLogger(__name__)
POLL_SECONDS = 1.0
#: Questions under way at once in a process.
AT_ONCE = 10
#: Sync functions that overran their time go on in their threads, as nothing can stop them; the others need some, too.
THREADS = 100


class Reconciler:
    """The questions under way in a worker process, and their answers until they are stored.

    A question is this process's for a window of one lease, renewed as the heartbeat is. One whose process dies is asked
    again by another after that.
    """

    def __init__(self, database: DatabaseThread, identity: Identity, catalogue: Callable[[], Catalogue]) -> None:
        self._database = database
        self._identity = identity
        self._catalogue = catalogue
        self._window: float = settings.REDRIVE_LEASE_SECONDS
        self._threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="reconcile")
        self._asking: dict[UUID, tuple[Asked, asyncio.Task[Answer]]] = {}
        self._answers: dict[UUID, Answer] = {}
        self._renewed_at = 0.0
        self._stopping = False
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """Look for unknown tasks that this process can ask about, once a second. Without any such handler: never."""
        while registry.reconcilers():
            try:
                await self._round()
            except Error as error:
                logger.warning("Unknown tasks could not be asked about (%s); trying again.", error)
            if not self._asking and not self._answers:
                self._idle.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(POLL_SECONDS, self._window / 4)):
                    await self._wake.wait()
            self._wake.clear()

    def stop(self) -> None:
        """Ask nothing new."""
        self._stopping = True

    async def finished(self, seconds: float) -> None:
        """Wait until all that was asked is answered and stored, at most so long. What is not, others ask again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._idle.wait()

    async def _round(self) -> None:
        if self._answers:
            await self._store(list(self._answers.values()))
        if self._asking and time.monotonic() - self._renewed_at >= self._window / 4:
            await self._renew()
        worker_id, room = self._identity.id, AT_ONCE - len(self._asking)
        if worker_id is not None and self._identity.is_fresh and room > 0 and not self._stopping:
            await self._ask(worker_id, room)

    # --- asking ----------------------------------------------------------------------------------------------------

    async def _ask(self, worker_id: int, room: int) -> None:
        began = time.monotonic()
        # An answer that is not stored yet would be lost with the process, and tell nothing for its task.
        open_still = [*(one for one, _ in self._asking.values()), *(one.asked for one in self._answers.values())]
        condemned = not any(one.condemned for one in open_still)
        handlers = registry.reconcilers()
        for asked in await self._database.run(ask, worker_id, room, handlers, self._window, condemned=condemned):
            # A process that was frozen meanwhile leaves them to those who ask after the window.
            if time.monotonic() - began < self._window and self._identity.holds(worker_id):
                self._begin(asked)

    def _begin(self, asked: Asked) -> None:
        self._drop(asked.task_id)
        if not self._asking:
            self._renewed_at = time.monotonic()
        asking = asyncio.create_task(self._question(asked))
        self._asking[asked.task_id] = asked, asking
        self._idle.clear()
        asking.add_done_callback(lambda task: self._answered(asked, task))

    def _answered(self, asked: Asked, task: asyncio.Task[Answer]) -> None:
        found = self._asking.get(asked.task_id)
        if found is not None and found[0] is asked:
            del self._asking[asked.task_id]
            if not task.cancelled():
                self._answers[asked.task_id] = task.result()
        self._wake.set()

    def _drop(self, task_id: UUID) -> None:
        """Others ask by now, or it is settled: an answer would be refused."""
        self._answers.pop(task_id, None)
        if found := self._asking.pop(task_id, None):
            found[1].cancel()

    async def _renew(self) -> None:
        began = time.monotonic()
        asked = [one for one, _ in self._asking.values()]
        mine = await self._database.run(renew, asked, self._window)
        self._renewed_at = began
        for one in asked:
            found = self._asking.get(one.task_id)
            if one.task_id not in mine and found is not None and found[0] is one:
                self._drop(one.task_id)

    # --- one question ----------------------------------------------------------------------------------------------

    async def _question(self, asked: Asked) -> Answer:
        """The answer; whatever goes wrong is "still unknown", and why."""
        work = asyncio.ensure_future(self._call(asked))
        try:
            await asyncio.wait([work], timeout=asked.timeout_seconds)
        finally:
            # Not waited for: neither a thread nor a coroutine that is deaf to it keeps the task from being asked again.
            work.cancel()
        if not work.done() or work.cancelled():
            return await self._failed(asked, AttemptTimeout(seconds=asked.timeout_seconds))
        value, error = work.result()
        if error is not None:
            return await self._failed(asked, error)
        try:
            return _answer(asked, value)
        except Unstorable as unstorable:
            return await self._failed(asked, unstorable, Truth.DONE)
        except TypeError as no_answer:
            return await self._failed(asked, no_answer)

    async def _call(self, asked: Asked) -> tuple[Any, BaseException | None]:
        """(value, error) of the function. Not raised: what ends a process must not end this one, which runs others."""
        try:
            found = registry.find_reconciler(asked.handler)
            if found is None:
                raise LookupError(f"This worker does not know what to ask about {asked.handler!r}.")
            return await self._value(found, _context(asked)), None
        except BaseException as error:
            return None, error

    async def _value(self, found: Handler, context: UnknownContext) -> Any:
        if found.is_async:
            return await found.function(context)
        loop = asyncio.get_running_loop()
        value, error = await loop.run_in_executor(self._threads, call, found.function, context)
        if error is not None:
            raise error
        # What merely wraps a coroutine function looks like a plain one.
        return await value if inspect.isawaitable(value) else value

    async def _failed(self, asked: Asked, error: BaseException, truth: Truth = Truth.STILL_UNKNOWN) -> Answer:
        # In a thread: the text of an error may be megabytes.
        return Answer(asked, truth, failed=await asyncio.to_thread(judge.recorded, error, self._catalogue()))

    # --- answers ---------------------------------------------------------------------------------------------------

    async def _store(self, answers: Sequence[Answer]) -> None:
        """Store them together; where that fails for one's sake, one by one."""
        worker_id = self._identity.id or 0
        try:
            stored = await self._database.run(answer, worker_id, answers)
        except Exception as error:
            if trouble(error) is Trouble.AWAY:
                raise
            if len(answers) > 1:
                for one in answers:
                    await self._store([one])
            else:
                await self._unstored(answers[0], error)
            return
        if stored.refused:
            logger.warning("Late answers refused, their tasks have moved on: %s", sorted(map(str, stored.refused)))
        for one in answers:
            if one.asked.task_id not in stored.busy and self._answers.get(one.asked.task_id) is one:
                del self._answers[one.asked.task_id]

    async def _unstored(self, one: Answer, error: Exception) -> None:
        """A result that the database refuses dies as unstorable; anything else is asked again after its window."""
        logger.error("The answer about task %s could not be stored.", one.asked.task_id, exc_info=error)
        if self._answers.get(one.asked.task_id) is one:
            del self._answers[one.asked.task_id]
            if trouble(error) is Trouble.VALUE and one.failed is None and one.truth is Truth.DONE:
                self._answers[one.asked.task_id] = await self._failed(one.asked, error, Truth.DONE)


def _answer(asked: Asked, value: Any) -> Answer:
    """Raises Unstorable for a result that cannot be kept, TypeError for what is no answer."""
    if not isinstance(value, Report):
        raise TypeError(
            f"The reconcile function of {asked.handler!r} returned {type(value).__name__}; it must return done(result),"
            " not_done or still_unknown."
        )
    return Answer(asked, value.truth, storable_result(value.result) if value.truth is Truth.DONE else None)


def _context(asked: Asked) -> UnknownContext:
    return UnknownContext(
        task_id=asked.task_id,
        attempt_id=asked.attempt_id,
        started_at=asked.started_at,
        process_ended=asked.process_ended,
        kind=asked.kind,
        cycle=asked.cycle,
        payload=json.loads(asked.payload_text),
        asks=asked.asks,
        session_id=asked.session_id,
        user_id=asked.user_id,
        trace_id=asked.trace_id,
        tags=asked.tags,
    )
