"""The simulated provider as a process of its own, as the demo and the drills run it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.demo.witness import read_log
from tests.tasks.demo.asking import until

ROOT = Path(__file__).resolve().parents[3]


class ProviderProcess:
    """``python -m tasks.demo.provider``, listening."""

    def __init__(self, log: Path, *options: str) -> None:
        self.log = log
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tasks.demo.provider", "--port", "0", "--log", str(log), *options],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening: "), line
        self.port = int(line.split()[1])

    def url(self, options: str = "") -> str:
        """The base URL with options such as ``fault/ok``."""
        return f"http://127.0.0.1:{self.port}/{options}/v1" if options else f"http://127.0.0.1:{self.port}/v1"

    def events(self, task: str) -> list[dict[str, Any]]:
        """What the witness wrote of a task, once each of its requests has an end."""

        def whole() -> list[dict[str, Any]]:
            found = [event for event in read_log(self.log) if event.get("task") == task]
            return found if found and len(found) % 2 == 0 else []

        return until(whole)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Stops the process; its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    """One provider for the run, without delays."""
    process = ProviderProcess(tmp_path_factory.mktemp("provider") / "witness.jsonl", "--delay", "0")
    yield process
    assert process.end() == 0
