"""A worker process: one event loop with slots that claims for itself, runs, saves, beats and drains."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from django.conf import settings
from django.db import DatabaseError

from tasks.engine import registry
from tasks.engine.catalogue import load_catalogue
from tasks.engine.claimer import Claimer, pause
from tasks.engine.contained import run_contained
from tasks.engine.database import DatabaseThread
from tasks.engine.identity import Identity
from tasks.engine.marks import Marks
from tasks.engine.others import OtherProviders
from tasks.engine.reconciler import Reconciler
from tasks.engine.runner import Abort, Runner, unstorable
from tasks.engine.saver import Saver
from tasks.engine.slots import Slots
from tasks.engine.wakeup import listen
from tasks.errors import BUILT_IN
from tasks.llm.provider import Clients

logger = logging.getLogger(__name__)
FEED_SECONDS = 0.5
CATALOGUE_SECONDS = 5.0
RETRY_SECONDS = 0.5
#: The last steps have an end, since the sentinel kills what is left 3 s after the drain time: so long for a claim under
#: way, for attempts to hear that they are stopped, for what was claimed and never started to be handed back.
STEP_SECONDS = 0.7
#: Until when ends are stored, in seconds after the drain time; how long the good-bye may take; the least for storing.
STORE_SECONDS, LEAVE_SECONDS, LEAST_SECONDS = 2.0, 0.4, 0.1


class Watchdog(Protocol):
    """What the sentinel watches: a loop that no longer feeds it is blocked."""

    def feed(self) -> None:
        """Tell that the loop turns."""


class Worker:
    """One process. ``run`` returns after a clean stop."""

    def __init__(self, watchdog: Watchdog, cluster: str) -> None:
        self.lease_seconds: float = settings.REDRIVE_LEASE_SECONDS
        self.drain_seconds: float = settings.REDRIVE_DRAIN_SECONDS
        self._watchdog = watchdog
        self._stop = asyncio.Event()
        self._database = DatabaseThread("database")
        self._identity = Identity(cluster, settings.REDRIVE_SLOTS, self.lease_seconds)
        self._clients = Clients()
        self._threads = ThreadPoolExecutor(max_workers=settings.REDRIVE_SLOTS, thread_name_prefix="handler")
        others = OtherProviders(self._database)
        self._runner = Runner(self._clients, self._threads, BUILT_IN, self._identity.holds, others)
        self._saver = Saver(self._database, lambda end, error: unstorable(end, error, self._runner.catalogue))
        self._slots = Slots(settings.REDRIVE_SLOTS, self._runner, self._saver, lambda: self._claimer.freed())
        self._claimer = Claimer(self._database, self._identity, self._slots, self._saver, self._stop)
        self._reconciler = Reconciler(self._database, self._identity, lambda: self._runner.catalogue)
        self._marks = Marks(self._database, self._identity, self._slots)

    async def run(self) -> None:
        """Work until SIGTERM or SIGINT, then drain and leave."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        feeding = asyncio.create_task(self._feed())
        if not await self._register():
            feeding.cancel()
            return
        background = [asyncio.create_task(self._guarded(part)) for part in self._parts()]
        claiming = asyncio.create_task(self._guarded(self._claimer.run))
        await self._stop.wait()
        self.wake()
        drained = time.monotonic() + self.drain_seconds
        await asyncio.wait([claiming], timeout=max(self.drain_seconds, STEP_SECONDS))
        await self._drain(drained)
        for part in (*background, feeding):
            part.cancel()
        await asyncio.gather(*background, feeding, return_exceptions=True)
        await self._leave()

    def stop(self) -> None:
        """Claim nothing more, drain, and leave."""
        self._reconciler.stop()
        self._stop.set()

    def wake(self) -> None:
        """Look for ready tasks now."""
        self._claimer.wake()

    def _parts(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        parts = [self._saver.run, self._beat_loop, self._marks.run, self._catalogue_loop, self._reconciler.run]
        if settings.REDRIVE_NOTIFY:
            parts.append(lambda: listen(self.wake))
        return parts

    async def _guarded(self, part: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A part that ends by an unforeseen error is logged and begins again; the process lives on."""
        while True:
            try:
                await part()
                return
            except Exception:
                logger.exception("A part of the worker failed and begins again.")
                # It may have been between a claim and its start.
                self._claimer.unsure = True
                await asyncio.sleep(RETRY_SECONDS)

    async def _feed(self) -> None:
        while True:
            self._watchdog.feed()
            await asyncio.sleep(FEED_SECONDS)

    # --- identity ------------------------------------------------------------------------------------------------

    async def _register(self) -> bool:
        """Take an identity; False when asked to stop before there was one."""
        while not self._stop.is_set():
            if await self._identity.take(registry.names(), registry.reconcilers()):
                return True
            await pause(self._stop, RETRY_SECONDS)
        return False

    async def _beat_loop(self) -> None:
        while True:
            await asyncio.sleep(self.lease_seconds / 4)
            if not await self._identity.beat(len(self._slots)):
                await self._lost()

    async def _lost(self) -> None:
        """The lease is gone and others may run our tasks: abort them, and begin again under a new identity."""
        logger.error("The lease of worker %s was lost; aborting %d attempts.", self._identity.id, len(self._slots))
        self._identity.id = None
        self._slots.stop(Abort.LEASE_LOST)
        await self._register()
        self.wake()

    # --- catalogue ------------------------------------------------------------------------------------------------

    async def _catalogue_loop(self) -> None:
        while True:
            try:
                self._runner.catalogue = await self._database.run(load_catalogue)
            except DatabaseError as error:
                logger.warning("The catalogue could not be read (%s); the last one is used.", error)
            await asyncio.sleep(CATALOGUE_SECONDS)

    # --- leaving ---------------------------------------------------------------------------------------------------

    async def _drain(self, deadline: float) -> None:
        """Let attempts end until ``deadline`` (monotonic), then hand the rest back uncounted, and store it all."""
        if self._claimer.unsure:
            await self._flush(STEP_SECONDS)
        if len(self._slots):
            logger.info("Draining %d attempts for up to %g s.", len(self._slots), self.drain_seconds)
            await self._slots.wait(deadline - time.monotonic())
        await self._reconciler.finished(deadline - time.monotonic())
        self._slots.stop(Abort.DRAINED)
        await self._slots.wait(STEP_SECONDS)
        self._slots.cut_off()
        await self._flush(max(deadline + STORE_SECONDS - time.monotonic(), LEAST_SECONDS))

    async def _flush(self, seconds: float) -> None:
        """Store all ends, and hand back what was claimed and never started.

        What is not stored within ``seconds`` the caretaker takes back, once this process has said that it stops.
        """
        try:
            async with asyncio.timeout(seconds):
                if self._claimer.unsure and self._identity.id is not None:
                    await self._claimer.hand_back_strays(self._identity.id)
                await self._saver.drained()
        except Exception as error:
            why = str(error) or "time is up"
            logger.error("%d ends could not be stored before leaving (%s).", len(self._saver), why)

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._identity.give_up()
                await self._clients.aclose()
                await self._database.close()
        except Exception as error:
            logger.warning("Left without saying so in the database (%s); the lease will run out.", error)
        self._threads.shutdown(wait=False)


def worker_process(timer: Watchdog, cluster: str) -> None:
    """The whole life of a pool process, called in the child that the sentinel started. Does not return."""
    # What is loaded by now stays until the end: without this every full collection walks through all of Django again.
    gc.collect()
    gc.freeze()
    # Hundreds of attempts begin and end at a time, and hardly one leaves a cycle behind.
    gc.set_threshold(10_000, 10, 10)
    run_contained(_main(timer, cluster))


async def _main(timer: Watchdog, cluster: str) -> None:
    code = 1
    try:
        await Worker(timer, cluster).run()
        code = 0
    except Exception:
        logger.critical("The worker failed.", exc_info=True)
    finally:
        # What a handler left behind (a thread, a task that ignores its cancellation) was handed back: others may run it
        # from now on. Python would wait for it, and let it work on meanwhile.
        sys.stdout.flush()
        sys.stderr.flush()
        logging.shutdown()
        os._exit(code)
