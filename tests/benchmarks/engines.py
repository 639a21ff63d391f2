"""Each engine as the benchmarks see it: put tasks in while it does not run, then time it from start to empty."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tests.benchmarks.bench import Store, processes, run

CONFIG = """
[[kind]]
name = "bench.empty"
handler = "bench.empty"

[[kind]]
name = "bench.sleep"
handler = "bench.sleep"

[[kind]]
name = "bench.when"
handler = "bench.when"

[[kind]]
name = "bench.paused"
handler = "bench.empty"
"""


class Engine(Protocol):
    """One engine on one database."""

    name: str

    def install(self) -> None:
        """Its tables."""

    def fill(self, count: int) -> None:
        """So many empty tasks, while no worker runs."""

    def drain(self, workers: int) -> float:
        """Start workers and wait until its own store shows all done; seconds from the first end to the last."""


def between_ends(store: Store, some: str, every: str) -> float:
    """Seconds from when ``some`` is true to when ``every`` is: start-up of the processes is not the engine's speed."""
    began = store.wait(some)
    return store.wait(every) - began


class Redrive:
    """This project: the real qcluster, with attempts and events."""

    name = "redrive"

    def __init__(self, dsn: str, slots: int = 500) -> None:
        self.dsn = dsn
        self.slots = slots
        self.env = {
            "DATABASE_URL": dsn,
            "SECRET_KEY": "only-for-benchmarks",
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "REDRIVE_APPS": "tests.benchmarks.workload",
            "REDRIVE_SLOTS": str(slots),
        }

    def install(self) -> None:
        """Migrations, and the kinds of the workload."""
        import tempfile

        run("manage.py", "migrate", "--verbosity", "0", env=self.env)
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(CONFIG)
            file.flush()
            run("manage.py", "loadconfig", file.name, env=self.env)

    def inside(self, what: str, argument: Any) -> Any:
        """Do one piece of work of ``inside.py`` in a process of its own; what it printed."""
        return json.loads(run("-m", "tests.benchmarks.inside", what, json.dumps(argument), env=self.env))

    def fill(self, count: int) -> None:
        """In bulk."""
        self.inside("fill", count)

    @contextmanager
    def held(self, store: Store, kind: str, workers: int) -> Iterator[tuple[int, Callable[[], None]]]:
        """The cluster, ready, while the block runs, its kind paused: the id of its main process, and its release."""
        store.ask("UPDATE tasks_kind SET paused_at = now() WHERE name = %s", kind)

        def release() -> None:
            store.ask("UPDATE tasks_kind SET paused_at = NULL WHERE name = %s", kind)
            store.ask("NOTIFY redrive_ready")

        environment = {**self.env, "REDRIVE_WORKERS": str(workers)}
        with processes([["manage.py", "qcluster"]], environment) as pids:
            store.wait("SELECT count(*) = %s FROM tasks_workerprocess WHERE role = 'worker'", workers)
            yield pids[0], release

    def drain(self, workers: int) -> float:
        """Workers that have registered are given the kind; then all is timed."""
        store = Store(self.dsn)
        with self.held(store, "bench.empty", workers) as (_, release):
            began = time.monotonic()
            release()
            # By an index: no engine is asked in a way that takes more the more is done.
            left = "SELECT 1 FROM tasks_task WHERE status IN ('ready', 'running')"
            seconds = store.wait(f"SELECT NOT EXISTS ({left})") - began
        done = store.ask("SELECT count(*) FROM tasks_task WHERE status <> 'succeeded'")[0][0]
        store.close()
        if done:
            raise RuntimeError(f"{done} tasks did not succeed")
        return seconds


class Stock:
    """django-q2 as it comes, ORM broker, CONN_MAX_AGE 600."""

    name = "django-q2"

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.env = {"BENCH_DSN": dsn, "DJANGO_SETTINGS_MODULE": "tests.benchmarks.rivals.stock.settings"}

    def install(self) -> None:
        """Its tables."""
        run("-m", "django", "migrate", "--verbosity", "0", env=self.env)

    def fill(self, count: int) -> None:
        """One by one."""
        code = f"import django; django.setup(); from tests.benchmarks.rivals.stock.work import fill; fill({count})"
        run("-c", code, env=self.env)

    def drain(self, workers: int) -> float:
        """Until every success is stored."""
        store = Store(self.dsn)
        (count,) = store.ask("SELECT count(*) FROM django_q_ormq")[0]
        with processes([["-m", "django", "qcluster"]], {**self.env, "BENCH_WORKERS": str(workers)}):
            began = store.wait("SELECT count(*) > 0 FROM django_q_task")
            seconds = store.wait("SELECT count(*) = %s FROM django_q_task", count) - began
        store.close()
        return seconds


class Script:
    """An engine that one of our scripts drives."""

    def __init__(self, name: str, script: str, dsn: str, some: str, every: str) -> None:
        self.name, self.dsn = name, dsn
        self._script = f"tests/benchmarks/rivals/{script}"
        self._some, self._every = some, every

    def install(self) -> None:
        """Its tables."""
        run(self._script, "install", self.dsn)

    def fill(self, count: int) -> None:
        """In its bulk form."""
        run(self._script, "fill", self.dsn, str(count))

    def drain(self, workers: int) -> float:
        """Until nothing is left in its queue."""
        store = Store(self.dsn)
        with processes([[self._script, "work", self.dsn]] * workers):
            seconds = between_ends(store, self._some, self._every)
        store.close()
        return seconds


def procrastinate(dsn: str) -> Script:
    """Jobs are kept, with their events."""
    return Script(
        "procrastinate",
        "procrastinate_worker.py",
        dsn,
        "SELECT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status <> 'todo')",
        "SELECT NOT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
    )


def pgqueuer(dsn: str) -> Script:
    """Jobs are deleted when done; its log keeps what became of them."""
    return Script(
        "pgqueuer",
        "pgqueuer_worker.py",
        dsn,
        "SELECT EXISTS (SELECT 1 FROM pgqueuer WHERE status <> 'queued')"
        " OR EXISTS (SELECT 1 FROM pgqueuer_log WHERE status = 'successful')",
        "SELECT NOT EXISTS (SELECT 1 FROM pgqueuer)",
    )
