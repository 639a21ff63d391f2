"""``manage.py demo`` as a process: ready, trickling, one at a time, the same port again, gone at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import openai
import pytest

from tasks.models import Kind, Provider, Task
from tests.tasks.demo.asking import ask, new_task, until
from tests.tasks.demo.conftest import ROOT

pytestmark = pytest.mark.django_db(transaction=True)


class Demo:
    """The command on the test's database, with a data directory of its own."""

    def __init__(self, folder: Path, database_url: str, **environment: str) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")},
            "DJANGO_SETTINGS_MODULE": "config.settings_test",
            "REDRIVE_DATA_DIR": str(folder),
            "DATABASE_URL": database_url,
            **environment,
        }
        self.errors = (folder / "stderr").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "demo"],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self.lines: list[str] = []

    def ready(self) -> Demo:
        """Waits for the line that says so."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())
            if line == "demo: ready\n":
                return self
        raise AssertionError(f"It ended: {self.lines} {self.stderr()}")

    @property
    def base_url(self) -> str:
        """The address it says it serves at."""
        return next(line.removeprefix("simulated provider: ") for line in self.lines if "127.0.0.1" in line)

    def stderr(self) -> str:
        """What it has complained about."""
        return (self.folder / "stderr").read_text()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Its exit code and the seconds it took to end."""
        start = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(15)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.errors.close()
        return code, time.monotonic() - start


@pytest.fixture
def start(tmp_path: Path, test_database_url: str) -> Iterator[Any]:
    """Starts demos; all of them are ended after the test."""
    demos: list[Demo] = []

    def begin(**environment: str) -> Demo:
        demos.append(Demo(tmp_path, test_database_url, **environment))
        return demos[-1]

    yield begin
    for demo in demos:
        demo.end(signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_gets_ready_trickles_and_ends_at_once(start: Any, number: int) -> None:
    demo = start().ready()
    provider = Provider.objects.get(pk="simulated")
    assert provider.base_url == demo.base_url
    until(lambda: Task.objects.count() >= 2)
    assert Task.objects.order_by("pk")[0].payload["ticket"] == "T-0001"
    assert ask(provider.base_url, new_task(), stream=False).finish == "stop"
    code, seconds = demo.end(number)
    assert code == 0
    assert seconds < 3
    assert demo.stderr() == ""
    done = Task.objects.count()
    assert json.loads((demo.folder / "demo.json").read_text())["next"] in {done, done - 1}


def test_a_restart_keeps_the_port_and_goes_on_in_the_tickets(start: Any) -> None:
    demo = start().ready()
    until(lambda: Task.objects.count() >= 1)
    demo.end(signal.SIGKILL)
    seen = Task.objects.count()
    again = start().ready()
    assert again.base_url == demo.base_url
    until(lambda: Task.objects.count() > seen)
    # A task that was submitted and not yet counted when it was killed may come twice; none is left out.
    numbers = [int(payload["ticket"][2:]) for payload in Task.objects.order_by("pk").values_list("payload", flat=True)]
    assert sorted(set(numbers)) == list(range(1, max(numbers) + 1))


def test_two_on_one_data_directory_are_one_too_many(start: Any) -> None:
    first = start().ready()
    second = start()
    code = second.process.wait(30)
    assert code == 1
    assert "Another 'manage.py demo' runs on" in second.stderr()
    assert first.process.poll() is None
    assert Provider.objects.get(pk="simulated").base_url == first.base_url


def test_without_a_database_it_says_so(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "postgresql://nobody@127.0.0.1:1/none")
    assert demo.process.wait(30) == 1
    assert "CommandError: The demo needs the database:" in demo.stderr()
    demo.end()


def test_a_key_adds_a_provider_that_the_trickle_never_uses(start: Any) -> None:
    demo = start(OPENAI_API_KEY="sk-test", OPENAI_BASE_URL="http://127.0.0.1:1/v1", OPENAI_MODEL="some-model").ready()
    assert any("with the model some-model" in line for line in demo.lines)
    real = Provider.objects.get(pk="openai")
    assert (real.base_url, real.simulated) == ("http://127.0.0.1:1/v1", False)
    kind = Kind.objects.get(pk="ticket.triage")
    kind.provider, kind.model = real, "some-model"
    kind.save()
    until(lambda: Task.objects.filter(kind__in=["customer.summary", "reply.draft"]).count() >= 2, 20)
    until(lambda: not Task.objects.filter(kind="ticket.triage").exclude(status="cancelled").exists())


def test_its_help_says_how_to_choose_a_model() -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings_test", "COLUMNS": "1000"}
    run = subprocess.run(
        [sys.executable, "manage.py", "demo", "--help"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert "the kind's field 'model' decides. OPENAI_MODEL is only the name that the demo proposes" in run.stdout


def test_the_engines_headers_clear_the_fault_in_the_second_cycle(start: Any) -> None:
    demo = start().ready()
    payload = "Ticket: T-0017\n\nEleven people paid too much."
    for cycle in ("1", "1", "1"):
        with pytest.raises(openai.InternalServerError):
            ask(demo.base_url, "x", content=payload, headers={"x-redrive-task": "t", "x-redrive-cycle": cycle})
    answer = ask(demo.base_url, "x", content=payload, headers={"x-redrive-task": "t", "x-redrive-cycle": "2"})
    assert answer.finish == "stop"


def test_a_trickle_that_breaks_ends_the_command(start: Any) -> None:
    demo = start().ready()
    until(lambda: Task.objects.exists())
    # Where its state is kept there is a folder now: nothing can be written over that.
    until(lambda: _block(demo.folder / "demo.json"))
    code = demo.process.wait(20)
    assert code == 1
    assert "The trickle of demo tasks broke: IsADirectoryError" in demo.stderr()


def _block(path: Path) -> bool:
    path.unlink(missing_ok=True)
    with suppress(FileExistsError):  # It was written once more in between.
        path.mkdir()
    return path.is_dir()
