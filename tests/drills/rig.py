"""What a drill runs on: a PostgreSQL of its own, the simulated provider with its witness log, a cluster that a service
manager restarts, and the product's own commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

from tasks.demo.witness import read_log
from tasks.embedded import place
from tasks.embedded.server import EmbeddedServer
from tests.cluster import ROOT, QCluster
from tests.drills.checker import AttemptRow, CallRow, EventRow, Evidence, TaskRow

CONFIG = """
[[provider]]
name = "simulated"
base_url = "http://127.0.0.1:{port}{path}/v1"

[[kind]]
name = "drill"
provider = "simulated"
model = "simulated-small"
prompt = "Drill [task:{{{{ mark }}}}]"
stream = true
timeout_seconds = 30
max_attempts = 3
initial_interval_seconds = 0.5

# Goes before what the drill piled up, so that it tells how soon the cluster works and not how long the queue is.
[[kind]]
name = "drill.probe"
provider = "simulated"
model = "simulated-small"
prompt = "Drill [task:{{{{ mark }}}}]"
priority = 100
"""
RESTART_SECONDS = 0.5
UNFINISHED = "SELECT 1 FROM tasks_task WHERE finished_at IS NULL LIMIT 1"


class Rig:
    """A context manager. ``path``: of the simulated provider, which chooses its delays and faults.

    ``config``: TOML with {{port}} and {{path}} of the provider. ``through``: the database's URL -> the one that the
    cluster is given, and it alone. ``said``: a file for what the cluster says.

    The simulated provider is told the ids of task and attempt (``simulated`` is set), so its log is a full witness.
    """

    def __init__(
        self,
        *,
        path: str,
        command: tuple[str, ...] = ("manage.py", "qcluster"),
        config: str = CONFIG,
        through: Callable[[str], str] = str,
        said: Path | None = None,
        **settings: object,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="redrive-drill-")).resolve()
        self.folder.chmod(0o711)
        self.server = EmbeddedServer(self.folder / "data")
        self.log = self.folder / "witness.jsonl"
        self.cluster: QCluster
        self.submitted: list[str] = []
        self._path = path
        self._command = command
        self._config = config
        self._through = through
        self._said = said
        self._settings = settings
        self._stack = ExitStack()
        self._provider: subprocess.Popen[str]
        self._managed = threading.Event()
        self._manager = threading.Thread(target=self._manage, name="service-manager", daemon=True)
        self._lock = threading.Lock()
        self.port = 0
        self.restarts = 0
        self.start_seconds = 0.0

    def __enter__(self) -> Rig:
        with self._stack as stack:
            stack.callback(self._remove)
            (self.folder / "data").mkdir(mode=0o711)
            self.server.start()
            stack.callback(self.server.stop, "immediate")
            self.url = self.server.dsn()
            self.port = self._start_provider(stack)
            self.install()
            self.cluster = self.make_cluster()
            stack.callback(lambda: self.cluster.__exit__(None, None, None))
            began = time.monotonic()
            self.wait_ready(self.cluster.start())
            self.start_seconds = time.monotonic() - began
            self._manager.start()
            stack.callback(self.unmanage)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stack.close()

    # --- the product under test ------------------------------------------------------------------------------------

    def install(self) -> None:
        """Tables and configuration."""
        self.command("migrate", "--verbosity", "0")
        self.command("loadconfig", "-", text=self._config.format(port=self.port, path=self._path))
        self.sql("UPDATE tasks_provider SET simulated = true")

    def make_cluster(self) -> QCluster:
        """One that is not started yet."""
        return QCluster(self._through(self.url), self._command, log=self._said, **self._settings)

    def wait_ready(self, cluster: QCluster) -> None:
        """Wait until it can work."""
        cluster.wait_ready()

    def role(self, pid: int) -> str:
        """What a process below the sentinel does: worker, caretaker, or child where it has not registered."""
        found = self.sql("SELECT role FROM tasks_workerprocess WHERE pid = %s ORDER BY id DESC LIMIT 1", pid)
        return str(found[0][0]) if found else "child"

    # --- the product's commands ------------------------------------------------------------------------------------

    def command(self, *words: str, text: str = "", program: str = "manage.py", **settings: object) -> str:
        """Run ``manage.py words…`` with ``text`` as its input; its output. Fails with what it said."""
        chosen = {name: str(value) for name, value in settings.items()}
        environment = {**os.environ, "DATABASE_URL": self.url, "SECRET_KEY": "only-for-tests", **chosen}
        done = subprocess.run(
            [sys.executable, program, *words],
            cwd=ROOT, env=environment, input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise AssertionError(f"{program} {words} exited with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, count: int, kind: str = "drill") -> list[str]:
        """Submit so many tasks by the command; their ids."""
        start = len(self.submitted)
        lines = "".join(json.dumps({"mark": f"{start + n}"}) + "\n" for n in range(count))
        ids = self.command("submit", kind, "--input", "-", text=lines).split()
        assert len(ids) == count
        self.submitted += ids
        return ids

    def sql(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """One statement over a connection of its own; its rows."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, params)
            return cursor.fetchall() if cursor.description else []

    def heard(self) -> str:
        """What the cluster has said so far, where that goes to a file."""
        return self._said.read_text("utf-8", "replace") if self._said and self._said.exists() else ""

    # --- the service manager ---------------------------------------------------------------------------------------

    def _manage(self) -> None:
        """Start main again when it is gone, as a service manager would."""
        while not self._managed.wait(0.1):
            if self.cluster.process.poll() is not None:
                time.sleep(RESTART_SECONDS)
                with self._lock:
                    if not self._managed.is_set():
                        self.cluster.start()
                        self.restarts += 1

    def unmanage(self) -> None:
        """From now on a main that ends stays down."""
        with self._lock:
            self._managed.set()
        self._manager.join(10)

    # --- evidence --------------------------------------------------------------------------------------------------

    def wait_settled(self, timeout: float, look: Callable[[], object] = bool) -> float:
        """Wait until every task has reached an end, or so long: what has not is then the checker's to report.

        Seconds that it took. ``look`` is called now and then meanwhile.
        """
        began = time.monotonic()
        while time.monotonic() < began + timeout and self.sql(UNFINISHED):
            look()
            time.sleep(0.2)
        return time.monotonic() - began

    def calls(self) -> list[CallRow]:
        """The witness's lines."""
        lines = read_log(self.log)
        return [
            CallRow(line["task"], int(line["attempt"] or 0), line["event"], line["wall_ns"] / 1e9) for line in lines
        ]

    def evidence(self) -> Evidence:
        """All that the drill left, for the checker."""
        tasks = self.sql(
            "SELECT t.id::text, status, k.max_attempts FROM tasks_task t JOIN tasks_kind k ON name = kind_id"
        )
        attempts = self.sql(
            "SELECT id, task_id::text, cycle, outcome, counted, extract(epoch FROM started_at)::float8,"
            " extract(epoch FROM finished_at)::float8 FROM tasks_attempt"
        )
        events = self.sql(
            "SELECT task_id::text, seq, type, from_status, to_status, extract(epoch FROM at)::float8"
            " FROM tasks_taskevent"
        )
        return Evidence(
            submitted=self.submitted,
            tasks=[TaskRow(*row) for row in tasks],
            attempts=[AttemptRow(*row) for row in attempts],
            events=[EventRow(*row) for row in events],
            calls=self.calls(),
        )

    # --- parts -----------------------------------------------------------------------------------------------------

    def _start_provider(self, stack: ExitStack) -> int:
        self._provider = subprocess.Popen(
            [sys.executable, "-m", "tasks.demo.provider", "--port", "0", "--log", str(self.log)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        stack.enter_context(self._provider)
        stack.callback(self._provider.kill)
        assert self._provider.stdout is not None
        said = self._provider.stdout.readline()
        assert said.startswith("listening: "), said
        return int(said.split()[1])

    def _remove(self) -> None:
        home = place.home(self.folder / "data")
        shutil.rmtree(self.folder, ignore_errors=True)
        if home != self.folder / "data":
            shutil.rmtree(home, ignore_errors=True)
