"""``manage.py qcluster``: what it refuses, what it waits for, how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from tests.tasks.engine.tree import NO_DATABASE, ROOT, wait_until

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


@pytest.fixture
def start(output: Path, tmp_path: Path) -> Iterator[Start]:
    """Start the command in a session of its own, with nothing in its environment but what is given."""
    started: list[subprocess.Popen[bytes]] = []

    def run(**environment: str) -> subprocess.Popen[bytes]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        defaults = {"DJANGO_SETTINGS_MODULE": "config.settings", "REDRIVE_DATA_DIR": str(tmp_path / "none")}
        with output.open("ab") as sink:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "qcluster"],
                cwd=ROOT,
                env={**kept, **defaults, "REDRIVE_WORKERS": "2", "REDRIVE_DRAIN_SECONDS": "1", **environment},
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        started.append(process)
        return process

    yield run
    for process in started:
        for member in session(process):
            member.kill()
        process.wait(10)


def session(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    def is_member(candidate: psutil.Process) -> bool:
        try:
            return os.getsid(candidate.pid) == process.pid and candidate.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False

    return [candidate for candidate in psutil.process_iter() if is_member(candidate)]


def wait_for(output: Path, text: str, seconds: float = 20) -> None:
    try:
        wait_until(lambda: text in output.read_text(), seconds, f"the output {text!r}")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{output.read_text()}") from error


@pytest.fixture
def empty_database(test_database_url: str, django_db_blocker: pytest.FixtureRequest) -> Iterator[str]:
    """DATABASE_URL of a second, empty database on the same server."""
    name = "redrive_qcluster_empty"
    with psycopg.connect(test_database_url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {name}")
        yield psycopg.conninfo.make_conninfo(test_database_url, dbname=name)
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_refuses_to_start_without_a_secret_key(start: Start, output: Path) -> None:
    assert start(DATABASE_URL=NO_DATABASE).wait(20) == 1
    assert "qcluster needs SECRET_KEY." in output.read_text()
    assert "Traceback" not in output.read_text()


def test_refuses_to_run_in_a_thread() -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call_command("qcluster", skip_checks=True)
        except CommandError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    assert "main thread" in str(raised[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_waits_for_the_database_and_leaves_when_asked(start: Start, output: Path, number: signal.Signals) -> None:
    process = start(DATABASE_URL=NO_DATABASE, SECRET_KEY="a-key-for-this-test")
    wait_for(output, "Waiting for the database: ")
    process.send_signal(number)
    assert process.wait(5) == 0
    assert "Traceback" not in output.read_text()
    assert "refused" in output.read_text()


def test_waits_for_migrations_then_runs_until_asked_to_stop(start: Start, output: Path, empty_database: str) -> None:
    process = start(DATABASE_URL=empty_database, SECRET_KEY="a-key-for-this-test")
    wait_for(output, "migrations are pending")
    assert "Run 'python manage.py migrate'." in output.read_text()
    assert len(session(process)) == 1
    environment = {**os.environ, "DATABASE_URL": empty_database, "SECRET_KEY": "a-key-for-this-test"}
    environment["DJANGO_SETTINGS_MODULE"] = "config.settings"
    subprocess.run([sys.executable, "manage.py", "migrate"], cwd=ROOT, env=environment, check=True, capture_output=True)
    wait_for(output, "qcluster: 2 workers of 50 slots each.")
    wait_until(lambda: live_rows(empty_database) == 3, 15, "the registration of two workers and a caretaker")
    assert len(session(process)) == 5
    process.send_signal(signal.SIGTERM)
    assert process.wait(6) == 0
    assert session(process) == []
    assert live_rows(empty_database) == 0, "each process said that it stopped"


def live_rows(url: str) -> int:
    with psycopg.connect(url) as database:
        row = database.execute(
            "SELECT count(*) FROM tasks_workerprocess WHERE stopped_at IS NULL AND lost_at IS NULL"
        ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.django_db(transaction=True)
def test_the_death_of_its_sentinel_is_an_error(start: Start, output: Path, test_database_url: str) -> None:
    process = start(DATABASE_URL=test_database_url, SECRET_KEY="a-key-for-this-test")
    wait_until(lambda: live_rows(test_database_url) == 3, 20, "the registration of two workers and a caretaker")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM tasks_workerprocess WHERE role = 'caretaker'")
        (caretaker,) = cursor.fetchone()
    sentinel = psutil.Process(caretaker).parent()
    assert sentinel is not None
    sentinel.kill()
    assert process.wait(5) == 1
    assert "qcluster ends because its sentinel died" in output.read_text()
    wait_until(lambda: not session(process), 2, "the end of every process")
