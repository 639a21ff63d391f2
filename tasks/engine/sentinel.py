"""django-q2's sentinel, kept: its guard loop, reincarnation, recycling and scheduler. Replaced: whatever can hang.

Nothing travels through its queues, no lock is shared with a child, the guard opens no database connection and waits for
none (what must be written is an errand), and stopping has an end. Where its guard has the pusher there is our
caretaker; where it has the monitor there is nothing to guard.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django_q import cluster as stock
from django_q.brokers import get_broker
from django_q.conf import Conf

from tasks.engine import lease
from tasks.engine.errand import Deaths, Errand
from tasks.engine.process import CLEAN, Child, receive_stop_signals
from tasks.engine.restart import delay_seconds, short_lives
from tasks.engine.schedules import fire_due
from tasks.engine.timer import Flag, Timer

logger = logging.getLogger(__name__)

#: After the drain time a process that has not ended has this long to be killed in; main allows a little more.
KILL_AFTER_DRAIN_SECONDS = 3.0
#: So long after the drain time the caretaker is asked to stop, whether the workers have left or not.
CARETAKER_AFTER_DRAIN_SECONDS = 2.5
STOP_POLL_SECONDS = 0.05
#: Between two looks at the clock this much longer than was meant: the guard was frozen, or starved of the processor.
FREEZE_SECONDS = 1.0
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Targets:
    """What the children run. ``worker(timer, cluster)`` and ``caretaker(cluster)`` return when they have stopped."""

    worker: Callable[[Timer, str], object]
    caretaker: Callable[[str], object]


def default_targets() -> Targets:
    """The engine's own worker and caretaker, imported before the first fork so that the children share the memory."""
    from tasks.engine.caretaker import caretaker_process
    from tasks.engine.worker import worker_process

    return Targets(worker_process, caretaker_process)


def write_deaths(cluster: str, deaths: list[tuple[int, int]]) -> None:
    """Errand: write down the deaths that the sentinel saw. An outage is one line in the log, and exit code 1."""
    try:
        for pid, exit_code in deaths:
            lease.record_exit(cluster, pid, exit_code)
    except Exception as error:
        logger.warning("%d deaths could not be written down yet: %s", len(deaths), error)
        raise SystemExit(1) from error


class NoQueue:
    """In place of a multiprocessing queue: always empty, takes nothing."""

    def qsize(self) -> int:
        """Nothing waits here."""
        return 0

    def empty(self) -> bool:
        """Always."""
        return True


class NoProcess:
    """In place of the monitor, which stores results: ours are stored by the workers themselves."""

    pid = 0

    def is_alive(self) -> bool:
        """Always: there is nothing to reincarnate."""
        return True


class Rounds:
    """What the guard waits on between two rounds, in the shape of an event. ``spend`` passes the time given to it."""

    def __init__(self, flag: Flag, spend: Callable[[float], None]) -> None:
        self._flag = flag
        self._spend = spend

    def is_set(self) -> bool:
        """Whether the tree is to stop."""
        return self._flag.is_set()

    def wait(self, seconds: float) -> bool:
        """Spend a cycle; whether the tree is to stop."""
        if not self._flag.is_set():
            self._spend(seconds)
        return self._flag.is_set()


class Sentinel(stock.Sentinel):  # type: ignore[misc]  # django-q2 is untyped
    """Guards the workers and the caretaker. Constructing it runs it: it returns when the tree has stopped.

    Runs as the target of a ``Child`` that keeps its stop signals held.
    """

    def __init__(self, stop_event: Flag, start_event: Flag, cluster_id: uuid.UUID, targets: Targets) -> None:
        super().__init__(stop_event, start_event, cluster_id, broker=get_broker(), start=False)
        # Main tells us to stop. A service manager signals the whole group: we must outlive that to see to the drain.
        receive_stop_signals(signal.SIG_IGN)
        self.cluster = lease.cluster_name(Conf.CLUSTER_NAME, secrets.token_hex(4))
        self._targets = targets
        self._born = 0
        self._seen_at = time.monotonic()
        self.task_queue = self.result_queue = NoQueue()
        self.stop_event = Rounds(stop_event, self._spend)
        self._deaths = Deaths(self.cluster, write_deaths)
        self._scheduling = Errand("scheduler", fire_due)
        # Its guard calls its module's ``scheduler``; in this process that one sends an errand.
        stock.scheduler = self._schedule
        self.start()

    def start(self) -> None:
        """Spawn and guard until told to stop. Whatever breaks the guard still drains the workers; exit code 1 then."""
        try:
            self.spawn_cluster()
            self.guard()
        except Exception as error:
            logger.critical("The sentinel failed and stops its processes.", exc_info=True)
            self.stop()
            raise SystemExit(1) from error

    # --- spawning ---------------------------------------------------------------------------------------------------

    def spawn_worker(self) -> None:
        """One more worker process in the pool, with a watchdog of its own."""
        timer = Timer(settings.REDRIVE_WATCHDOG_SECONDS)
        self.pool.append(self._spawn("worker", self._targets.worker, timer, self.cluster, timer=timer))

    def spawn_pusher(self) -> Child:
        """In the pusher's place: the caretaker."""
        return self._spawn("caretaker", self._targets.caretaker, self.cluster)

    def spawn_monitor(self) -> NoProcess:
        """In the monitor's place: nothing."""
        return NoProcess()

    def _spawn(self, name: str, target: Callable[..., object], *args: Any, timer: Timer | None = None) -> Child:
        self._born += 1
        daemon = timer is None or Conf.DAEMONIZE_WORKERS
        child = Child(target, args, name=f"{name}-{self._born}", timer=timer, daemon=daemon)
        child.start()
        return child

    # --- guarding ---------------------------------------------------------------------------------------------------

    def reincarnate(self, process: Child) -> None:
        """Replace a process that ended or whose event loop is blocked, at once or when its wait is over.

        The guard asks again every round, so a wait, also after a fork that failed, needs no other clock.
        """
        if not self._has_ended(process) or not self._is_due(process):
            return
        position = self.pool.index(process) if process in self.pool else None
        try:
            super().reincarnate(process)
        except OSError as error:
            # No room for another process: the place stays, with the dead process in it.
            if position is not None and process not in self.pool:
                self.pool.insert(position, process)
            logger.error("No process could be started in place of %s %s: %s", process.name, process.pid, error)
            process.ended_at = time.monotonic()
            process.short_lives += 1
            return
        heir = self.pusher if position is None else self.pool[-1]
        heir.short_lives = process.short_lives

    def _has_ended(self, process: Child) -> bool:
        """See to it that it has, and on the first look write down how."""
        if process.ended_at is not None:
            return True
        if process.is_alive() and not self._kill_blocked(process):
            return False
        self._bury(process)
        return True

    def _kill_blocked(self, process: Child) -> bool:
        """Kill it unless its event loop has come back this very moment; whether it is gone."""
        # In this order: had we been away, too, its silence was read after that, and our absence is seen now.
        if not process.is_blocked or self._was_away():
            return False
        logger.critical("The event loop of %s %s is blocked; it is killed.", process.name, process.pid)
        return process.destroy()

    def _bury(self, process: Child) -> None:
        process.ended_at = time.monotonic()
        process.short_lives = short_lives(process.short_lives, process.ended_at - process.started_at)
        code = process.exitcode if process.exitcode is not None else 0
        if process.timer is not None and not process.is_blocked:
            # Read again when the place is filled: this death is not to look like a blocked loop by then.
            process.timer.grant(DAY_SECONDS)
        if code not in CLEAN:
            logger.error("%s %s ended with exit code %s.", process.name, process.pid, code)
            if process.pid:
                self._deaths.note(process.pid, code)

    def _is_due(self, process: Child) -> bool:
        if process.is_recycled:
            return True
        code = process.exitcode if process.exitcode is not None else 0
        waited = time.monotonic() - (process.ended_at or 0.0)
        return waited >= delay_seconds(code, process.short_lives)

    def _spend(self, seconds: float) -> None:
        """The time between two rounds: do the chores, then sleep."""
        self._deaths.tend()
        self._scheduling.ended()
        self._was_away()
        time.sleep(seconds)
        self._was_away(seconds)

    def _was_away(self, asleep: float = 0.0) -> bool:
        """Whether this process did not run either since it last asked; the silence of the others proves nothing then.

        ``asleep``: how long it was meant to sleep meanwhile. At whatever point of its round it was frozen, or starved
        of the processor, it asks before it believes that another is blocked.
        """
        now = time.monotonic()
        away = now - self._seen_at - asleep
        self._seen_at = now
        if away <= FREEZE_SECONDS:
            return False
        logger.warning("The guard was away for %.1f s; the watchdogs start anew.", away)
        for process in self.pool:
            process.timer.grant()
        return True

    def _schedule(self, broker: Any = None) -> None:
        self._scheduling.start((broker,))

    # --- stopping ---------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Workers first, which drain; the caretaker after them; what is left 3 s after the drain time is killed."""
        logger.info("Stopping %d processes; draining for %.0f s.", len(self.pool) + 1, settings.REDRIVE_DRAIN_SECONDS)
        started = time.monotonic()
        drained = started + settings.REDRIVE_DRAIN_SECONDS
        self._ask(self.pool)
        # The caretaker takes back what they leave under way, and learns from the database who died.
        self._await(self.pool, drained + CARETAKER_AFTER_DRAIN_SECONDS)
        caretakers = [self.pusher] if self.pusher else []
        self._ask(caretakers)
        self._await([*self.pool, *caretakers], drained + KILL_AFTER_DRAIN_SECONDS)
        for process in [*self.pool, *caretakers]:
            if process.is_alive():
                logger.error("%s %s did not stop in time; it is killed.", process.name, process.pid)
                process.destroy()
        self._deaths.abandon()
        self._scheduling.abandon()
        logger.info("All processes have stopped after %.1f s.", time.monotonic() - started)

    def _ask(self, processes: list[Child]) -> None:
        for process in processes:
            process.send(signal.SIGTERM)

    def _await(self, processes: list[Child], deadline: float) -> None:
        """Until all have ended and their deaths are written down, or ``deadline``; the watchdog goes on meanwhile."""
        while time.monotonic() < deadline:
            # Each is asked, not just the first that lives.
            ended = [self._has_ended(process) for process in processes]
            if all(ended) and not self._deaths.are_being_written:
                return
            self._spend(STOP_POLL_SECONDS)


def run(stop_event: Flag, start_event: Flag, cluster_id: uuid.UUID, targets: Targets) -> None:
    """Target of the sentinel's process. Names its process id in the log, since that is what an operator looks for."""
    logger.info("Sentinel %s guards %d workers.", os.getpid(), Conf.WORKERS)
    Sentinel(stop_event, start_event, cluster_id, targets)
