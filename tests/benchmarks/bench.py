"""What every benchmark stands on: a server of its own, processes of an engine, and a clock that asks the store."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tasks.embedded import place
from tasks.embedded.server import EmbeddedServer

ROOT = Path(__file__).resolve().parents[2]
#: Seldom: with so many rows a question is work, too, on the same two cores.
ASK_SECONDS = 0.05
PATIENCE = 600.0
#: The same for every engine; a durable server as it comes, with the memory that any would have.
SERVER = {"shared_buffers": "256MB", "max_connections": "200"}


@contextmanager
def server() -> Iterator[EmbeddedServer]:
    """A PostgreSQL of the benchmark's own, removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="redrive-bench-")).resolve()
    folder.chmod(0o711)
    data = folder / "data"
    data.mkdir(mode=0o711)
    running = EmbeddedServer(data, options=SERVER)
    try:
        running.start()
        yield running
    finally:
        running.stop("immediate")
        home = place.home(data)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


def database(running: EmbeddedServer, name: str) -> str:
    """A new empty database; its DSN."""
    with psycopg.connect(running.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[call-overload]
    return running.dsn(name)


def run(*words: str, env: Mapping[str, str] | None = None) -> str:
    """A command of the same Python, to its end; its output."""
    command = [sys.executable, *words]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def processes(commands: Sequence[Sequence[str]], env: Mapping[str, str] | None = None) -> Iterator[list[int]]:
    """These commands of the same Python while the block runs; their process ids."""
    environment = {**os.environ, **(env or {})}
    started = [
        subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, start_new_session=True)
        for command in commands
    ]
    try:
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()


class Store:
    """An engine's own store, asked over one connection."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)

    def ask(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """The rows."""
        cursor = self._connection.execute(statement, params)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []

    def wait(self, statement: str, *params: Any) -> float:
        """Ask until the answer is true; the monotonic time then."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.ask(statement, *params)[0][0]:
                return time.monotonic()
            time.sleep(ASK_SECONDS)
        raise TimeoutError(f"not within {PATIENCE:g} s: {statement}")

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
