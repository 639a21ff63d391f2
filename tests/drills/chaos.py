"""What a drill does to a running rig: freezes, outages, ended sessions, kills. All chosen by one seed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
import psycopg

from tests.cluster import end_sessions, wait_until
from tests.drills.rig import Rig

WAVE_SECONDS = 5.0
SESSIONS_EVERY = 20.0
UNDER_WAY = (
    "SELECT count(*) FROM tasks_task t JOIN tasks_workerprocess w ON w.id = t.worker_id WHERE t.status = 'running'"
    " AND w.lost_at IS NULL"
)


@dataclass(frozen=True)
class Kill:
    """One SIGKILL. ``parent``: of the victim at that moment. ``at``: seconds of the wall clock."""

    at: float
    role: str
    pid: int
    parent: int


@dataclass(frozen=True)
class Outage:
    """The time without a database, and the tasks that were under way or waiting."""

    seconds: float
    tasks: Sequence[str]


class Chaos:
    """``say`` is told each step as it happens."""

    def __init__(self, rig: Rig, seed: int, say: Callable[[str], None]) -> None:
        self.rig = rig
        self.say = say
        self.random = random.Random(seed)
        self.kills: list[Kill] = []
        self.outages: list[Outage] = []
        #: Tasks that ran while sessions were ended, and how many sessions that were.
        self.cut: list[str] = []
        self.sessions_ended = 0

    # --- freezes ---------------------------------------------------------------------------------------------------

    def freeze(self, tasks: int, seconds: float, at_least: int) -> None:
        """Stop one worker that runs ``at_least`` tasks; the others take them over, and its late ends are refused."""
        self.rig.submit(tasks)
        pid = wait_until(lambda: self._busy_worker(at_least), "a worker with many tasks under way")
        self.say(f"freeze worker {pid} for {seconds:g} s")
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)

    def _busy_worker(self, at_least: int) -> int | None:
        live = self.rig.cluster.worker_pids()
        busy = self.rig.sql(
            "SELECT w.pid FROM tasks_task t JOIN tasks_workerprocess w ON w.id = t.worker_id WHERE t.status = 'running'"
            " AND w.pid = ANY(%s) AND w.lost_at IS NULL GROUP BY w.pid HAVING count(*) >= %s ORDER BY count(*) DESC",
            live, at_least,
        )  # fmt: skip
        return int(busy[0][0]) if busy else None

    # --- the database ----------------------------------------------------------------------------------------------

    def outage(self, tasks: int, seconds: float, settle_seconds: float) -> None:
        """Stop PostgreSQL as by a crash while tasks run, and start it ``seconds`` later; then all of them must end."""
        self.say(f"PostgreSQL is away for {seconds:g} s")
        ids = self.rig.submit(tasks)
        wait_until(lambda: self.rig.sql(UNDER_WAY)[0][0] >= min(4, tasks), "tasks under way")
        self.rig.server.stop("immediate")
        began = time.monotonic()
        time.sleep(seconds)
        self.rig.server.start()
        self.outages.append(Outage(time.monotonic() - began, ids))
        self.rig.wait_settled(settle_seconds)

    def end_sessions(self, tasks: int, seconds: float, settle_seconds: float) -> None:
        """End every session of the database each 20 s, as an administrator would, while tasks run."""
        times = max(1, round(seconds / SESSIONS_EVERY))
        for _ in range(times):
            began = time.monotonic()
            self.cut += self.rig.submit(tasks // times)
            wait_until(lambda: self.rig.sql(UNDER_WAY)[0][0] > 0, "tasks under way")
            with psycopg.connect(self.rig.url, autocommit=True) as connection:
                ended = end_sessions(connection, [connection.info.backend_pid])
            self.say(f"{ended} sessions ended")
            self.sessions_ended += ended
            time.sleep(max(0.0, began + min(seconds, SESSIONS_EVERY) - time.monotonic()))
        self.rig.wait_settled(settle_seconds)

    # --- kills -----------------------------------------------------------------------------------------------------

    def kill(
        self,
        tasks: int,
        seconds: float,
        every: tuple[float, float],
        *,
        at_least: int = 0,
        restarts: int = 0,
        only_workers: bool = False,
    ) -> None:
        """SIGKILL one process of the tree after the other, while tasks keep coming; restart PostgreSQL in between.

        ``at_least`` so many kills: a busy machine, on which a tree takes long to start, is given more time for them.
        """
        with self._killing(every, only_workers):
            self._feed(tasks, seconds, restarts)
            wait_until(lambda: len(self.kills) >= at_least, f"{at_least} kills", 3 * seconds)

    @contextmanager
    def _killing(self, every: tuple[float, float], only_workers: bool) -> Iterator[None]:
        """While the block runs."""
        over = threading.Event()

        def work() -> None:
            while not over.wait(self.random.uniform(*every)):
                self._kill_one(only_workers)

        with ThreadPoolExecutor(1) as threads:
            working = threads.submit(work)
            try:
                yield
            finally:
                over.set()
            working.result()

    def _feed(self, tasks: int, seconds: float, restarts: int) -> None:
        """Submit the tasks in waves over the whole time. The restarts are here, as a submit must not meet one."""
        waves = max(1, round(seconds / WAVE_SECONDS))
        restart_before = {waves * (n + 1) // (restarts + 1) for n in range(restarts)}
        sizes = [tasks // waves + (n < tasks % waves) for n in range(waves)]
        began = time.monotonic()
        for number, size in enumerate(sizes):
            if number in restart_before:
                self.say("restart PostgreSQL, immediate")
                self.rig.server.restart("immediate")
            self.rig.submit(size)
            time.sleep(max(0.0, began + (number + 1) * WAVE_SECONDS - time.monotonic()))

    def _kill_one(self, only_workers: bool) -> None:
        tree = self.rig.cluster.processes()
        if len(tree) < 2:
            return  # main is starting: on a slow machine nothing else would ever be killed
        workers = set(self._workers()) if only_workers else None
        chosen = [process for process in tree if workers is None or process.pid in workers]
        if not chosen:
            return
        victim = self.random.choice(chosen)
        try:
            role, parent = self._role(victim, tree), victim.ppid()
            victim.kill()
        except psutil.NoSuchProcess:
            return
        self.kills.append(Kill(time.time(), role, victim.pid, parent))
        self.say(f"kill {role} {victim.pid}")

    def _workers(self) -> list[int]:
        try:
            return self.rig.cluster.worker_pids()
        except psycopg.OperationalError:  # it restarts just now
            return []

    def _role(self, victim: psutil.Process, tree: list[psutil.Process]) -> str:
        """Main, sentinel, worker, caretaker; else a child that has not registered."""
        if victim.pid == tree[0].pid:
            return "main"
        if victim.ppid() == tree[0].pid:
            return "sentinel"
        try:
            return self.rig.role(victim.pid)
        except psycopg.OperationalError:  # it restarts just now
            return "child"

    # --- after it --------------------------------------------------------------------------------------------------

    def probe(self) -> float:
        """Submit one task after the last kill; how long after its commit the provider is asked for it."""
        (task,) = self.rig.submit(1, "drill.probe")
        ((began,),) = self.rig.sql("SELECT extract(epoch FROM created_at)::float8 FROM tasks_task WHERE id = %s", task)

        def asked() -> float | None:
            return next((c.at for c in self.rig.calls() if c.task == task and c.event == "request"), None)

        return wait_until(asked, "the probe task's call", 30) - began
