"""The attempts under way in a worker process, and what becomes of each when it ends, however it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from tasks.engine.runner import Abort, Runner, Running, unstorable
from tasks.engine.saver import Saver
from tasks.engine.snapshot import Job
from tasks.errors import BUILT_IN
from tasks.lifecycle import End, LogLine
from tasks.states import Outcome

logger = logging.getLogger(__name__)


class Slots:
    """So many attempts at once. Each reaches the saver as an end, exactly once. ``freed`` is called after each."""

    def __init__(self, count: int, runner: Runner, saver: Saver, freed: Callable[[], None]) -> None:
        self.count = count
        self._runner = runner
        self._saver = saver
        self._freed = freed
        self._running: dict[int, Running] = {}

    def __len__(self) -> int:
        return len(self._running)

    @property
    def free(self) -> int:
        """How many more attempts there is room for."""
        return self.count - len(self._running)

    def attempts(self) -> set[int]:
        """The ids of the attempts under way."""
        return set(self._running)

    def start(self, job: Job, worker_id: int) -> None:
        """Begin an attempt that this worker identity has claimed."""
        running = Running(job, worker_id)
        self._running[job.claimed.attempt_id] = running
        running.task = asyncio.create_task(self._runner.run(running))
        # A callback, not code around the run: a task that is cancelled before its first step never enters its body.
        running.task.add_done_callback(lambda task: self._ended(running, task))

    def stop(self, why: Abort, attempts: Iterable[int] | None = None) -> None:
        """Abort these attempts, or all. The first reason that an attempt is given counts."""
        for attempt_id in self.attempts() if attempts is None else attempts:
            if running := self._running.get(attempt_id):
                running.stop(why)

    async def wait(self, seconds: float) -> None:
        """Wait until all have ended, at most so long."""
        if tasks := [running.task for running in self._running.values() if running.task]:
            await asyncio.wait(tasks, timeout=max(seconds, 0.0))

    def cut_off(self) -> None:
        """Hand back those that would not be stopped. The process must end once this is stored, and they with it."""
        for running in self._running.values():
            logger.warning("Attempt %d does not stop; it is cut off.", running.job.claimed.attempt_id)
            self._put_back(running)

    def take_progress(self) -> dict[tuple[UUID, int], dict[str, Any]]:
        """What attempts have told of themselves since the last time, by (task, attempt)."""
        told = [running for running in self._running.values() if running.progress.changed]
        for running in told:
            # Before it is read, since a thread may tell more at any moment.
            running.progress.changed = False
        return {
            (running.job.claimed.task_id, running.job.claimed.attempt_id): running.progress.value or {}
            for running in told
        }

    def untake_progress(self, attempts: Iterable[int]) -> None:
        """It could not be stored: offer it again."""
        for attempt_id in attempts:
            if running := self._running.get(attempt_id):
                running.progress.changed = True

    def log_lines(self) -> list[tuple[int, LogLine]]:
        """The lines that attempts have written and that are not known to be stored, each with its attempt."""
        return [(attempt_id, line) for attempt_id, running in self._running.items() for line in running.log.waiting()]

    def log_stored(self, lines: Sequence[tuple[int, LogLine]]) -> None:
        """These lines are stored. What its end took along meanwhile is no matter: a line stands once."""
        for attempt_id, seq in {attempt_id: line.seq for attempt_id, line in lines}.items():
            if running := self._running.get(attempt_id):
                running.log.stored(seq)

    def _ended(self, running: Running, task: asyncio.Task[End]) -> None:
        claimed = running.job.claimed
        del self._running[claimed.attempt_id]
        if task.cancelled():
            self._put_back(running)
        elif error := task.exception():
            # Reading the failure failed: our own bug, and still the task must reach a recorded end.
            logger.error("Attempt %d could not be judged.", claimed.attempt_id, exc_info=error)
            end = End(task_id=claimed.task_id, attempt_id=claimed.attempt_id, outcome=Outcome.FAILED)
            self._put(running, unstorable(end, error, BUILT_IN))
        else:
            self._put(running, task.result())
        self._freed()

    def _put_back(self, running: Running) -> None:
        outcome = Outcome.CANCELLED if running.abort is Abort.CANCELLED else Outcome.INTERRUPTED
        claimed = running.job.claimed
        end = End(task_id=claimed.task_id, attempt_id=claimed.attempt_id, outcome=outcome, started=running.started)
        self._put(running, end)

    def _put(self, running: Running, end: End) -> None:
        lines = running.log.waiting()
        self._saver.put(running.worker_id, replace(end, log=lines) if lines else end)
