"""Runs one claimed task to the end of its attempt: a prompt through the model, a handler in the loop or in a thread."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from tasks import payload_schemas
from tasks.engine import judge, registry
from tasks.engine.asking import Asker, marks
from tasks.engine.context import Context, Progress
from tasks.engine.log import Log
from tasks.engine.others import OtherProviders
from tasks.engine.snapshot import Job
from tasks.engine.stall import Stall
from tasks.engine.threads import call
from tasks.engine.usage import usage_of
from tasks.errors import AnswerMalformed, AttemptTimeout, Catalogue, ConfigurationFault, InputInvalid, Stalled
from tasks.lifecycle import End, Usage
from tasks.lifecycle.clean import Unstorable, storable_result
from tasks.lifecycle.end import DIE
from tasks.llm.call import run_prompt
from tasks.llm.gate import KeptBack
from tasks.llm.provider import Clients
from tasks.llm.request import CallRecord
from tasks.states import Outcome, Reason

logger = logging.getLogger(__name__)
#: Work that ends so long after its timeout ended by itself; stopping takes less.
LATE_SECONDS = 1.0


class Abort(Enum):
    """Why the worker cancelled an attempt."""

    CANCELLED = auto()
    DRAINED = auto()
    LEASE_LOST = auto()


@dataclass(slots=True, eq=False)
class Running:
    """One attempt under way in this process."""

    job: Job
    worker_id: int
    progress: Progress = field(default_factory=Progress)
    log: Log = field(init=False)
    calls: list[CallRecord] = field(default_factory=list)
    repairs: int = 0
    mended: list[str] = field(default_factory=list)
    started: bool = False
    abort: Abort | None = None
    task: asyncio.Task[End] | None = None
    limit: asyncio.Timeout | None = None
    asker: Asker | None = None

    def __post_init__(self) -> None:
        claimed = self.job.claimed
        self.log = Log(claimed.kind, claimed.task_id)

    @property
    def is_stopped(self) -> bool:
        """Whether it was told to stop: by the worker, or because its time is up."""
        return self.abort is not None or (self.limit is not None and self.limit.expired())

    def stop(self, why: Abort) -> None:
        """Cancel it, once: the first reason counts."""
        if self.abort is None and self.task is not None:
            self.abort = why
            self.task.cancel()
            if self.asker is not None:
                self.asker.stop()


class Runner:
    """Runs attempts with the clients, the threads and the catalogue of this process."""

    def __init__(
        self,
        clients: Clients,
        threads: Executor,
        catalogue: Catalogue,
        is_held_by: Callable[[int], bool],
        others: OtherProviders,
    ) -> None:
        """``is_held_by``: whether this process still has the lease of that worker identity."""
        self._clients = clients
        self._others = others
        self._is_held_by = is_held_by
        self._threads = threads
        self.catalogue = catalogue

    async def run(self, running: Running) -> End:
        """The end of this attempt, whatever happens in it."""
        began = time.monotonic()
        running.limit = limit = asyncio.timeout(running.job.kind.timeout_seconds)
        stall = Stall(running.progress, running.job.kind.stall_seconds, limit)
        try:
            async with limit:
                with stall:
                    value = await self._work(running)
            if not limit.expired():
                return self._succeeded(running, value)
            # The work would not be stopped and gave a value after all: it is late, and dropped.
            return await self._failed(_timed_out(running, began, stall), running, began)
        except BaseException as error:
            # All of them: sys.exit() or a KeyboardInterrupt of a handler must not end the process, which runs others.
            if running.abort is not None or (isinstance(error, KeptBack) and not limit.expired()):
                return self._aborted(running)
            return await self._failed(_timed_out(running, began, stall) if limit.expired() else error, running, began)

    async def _work(self, running: Running) -> Any:
        job = running.job
        payload = json.loads(job.claimed.payload_text)
        if job.spec is None:
            return await self._handle(running, payload)
        if job.provider is None:
            raise ConfigurationFault(f"The kind {job.kind.name!r} has no provider.")
        running.started = True
        result = await run_prompt(
            clients=self._clients,
            provider=job.provider,
            spec=job.spec,
            payload=payload,
            on_progress=lambda pieces: running.progress.tell(tokens=pieces),
            calls=running.calls,
            headers=marks(job.claimed) if job.simulated else None,
            is_ours=lambda: self._is_held_by(running.worker_id),
        )
        running.repairs, running.mended = result.repairs, result.mended
        return result.value

    async def _handle(self, running: Running, payload: Any) -> Any:
        name = running.job.claimed.handler
        if not name:
            raise ConfigurationFault(f"The kind {running.job.kind.name!r} has no prompt.")
        found = registry.find(name)
        if found is None:
            raise ConfigurationFault(f"This worker does not know the handler {name!r}.")
        if wrong := await payload_schemas.misfit_beside_others(name, payload):
            raise InputInvalid(wrong.sentence)
        if not self._is_held_by(running.worker_id):
            raise KeptBack
        running.started = True
        running.asker = asker = Asker(running, self._clients, self._others, lambda: self._is_held_by(running.worker_id))
        context = Context(payload, running.job.claimed, running.progress, running.log, asker)
        try:
            if found.is_async:
                return await found.function(context)
            value = await self._in_thread(found.function, context, asker)
            # What merely wraps a coroutine function looks like a plain one.
            return await value if inspect.isawaitable(value) else value
        finally:
            await asker.close()

    async def _in_thread(self, function: Any, context: Context, asker: Asker) -> Any:
        """Run a sync handler. A thread cannot be stopped: its slot and lease are kept until it has ended."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, call, function, context)
        stopped: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as error:
                stopped = error
                asker.stop()
        if stopped is not None:
            raise stopped
        value, raised = future.result()
        if raised is not None:
            raise raised
        return value

    def _succeeded(self, running: Running, value: Any) -> End:
        usage = _usage(running)
        try:
            return _end(running, Outcome.SUCCEEDED, result_text=storable_result(value), usage=usage)
        except Unstorable as error:
            return unstorable(_end(running, Outcome.FAILED, usage=usage), error, self.catalogue)

    def _aborted(self, running: Running) -> End:
        """Cancelled, or handed back. After a lost lease the fence decides: taken over already, it refuses and notes."""
        outcome = Outcome.CANCELLED if running.abort is Abort.CANCELLED else Outcome.INTERRUPTED
        return _end(running, outcome, started=running.started, usage=_usage(running))

    async def _failed(self, error: BaseException, running: Running, began: float) -> End:
        job = running.job
        if job.spec is not None and isinstance(error, AnswerMalformed):
            running.repairs = error.repairs
        if running.asker and (provider := running.asker.provider_of(error)):
            # The failure is that provider's, not the kind's own.
            job = job._replace(provider=provider)
        return await judge.judged(error, job, self.catalogue, _usage(running), time.monotonic() - began)


def unstorable(end: End, error: BaseException, catalogue: Catalogue) -> End:
    """The death of a task whose end cannot be stored; trail and log, which may be the culprits, are dropped."""
    return replace(
        end,
        outcome=Outcome.FAILED,
        result_text=None,
        failed=judge.recorded(error, catalogue),
        action=DIE,
        reason=Reason.UNSTORABLE,
        decision={"action": DIE, "reason": str(Reason.UNSTORABLE)},
        hold=None,
        cool_seconds=None,
        usage=replace(end.usage, calls=(), mended=[]),
        log=(),
    )


def _usage(running: Running) -> Usage:
    return usage_of(running.calls, running.repairs, running.mended, running.job.database_time)


def _end(running: Running, outcome: Outcome, **more: Any) -> End:
    claimed = running.job.claimed
    return End(task_id=claimed.task_id, attempt_id=claimed.attempt_id, outcome=outcome, **more)


def _timed_out(running: Running, began: float, stall: Stall) -> AttemptTimeout | Stalled:
    if stall.seen:
        return Stalled(seconds=running.job.kind.stall_seconds)
    seconds, ran = running.job.kind.timeout_seconds, time.monotonic() - began
    if ran < seconds + LATE_SECONDS:
        return AttemptTimeout(seconds=seconds)
    return AttemptTimeout(
        f"no answer within {seconds:g} s; the handler would not be stopped; what came after {ran:.1f} s is dropped",
        seconds=seconds,
    )
