"""The loop over real children and a real database, driven by real signals."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

import pytest

from tasks.embedded.server import EmbeddedServer
from tasks.supervise.part import Part
from tasks.supervise.signals import StopRequested, StopSignals
from tasks.supervise.supervisor import Supervisor
from tests.tasks.embedded.test_server import until
from tests.tasks.supervise.shortage import no_open_files

#: Writes its name into the file ``order`` when it is asked to stop. With "stubborn" it only notes that, with "waits" it
#: ends once another has, too.
CODE = """
import signal, sys, time
name, mood = sys.argv[1:]
def end(*_):
    with open("order", "a") as file:
        file.write(name + "\\n")
    while mood == "waits" and len(open("order").readlines()) < 2:
        time.sleep(0.02)
    if mood != "stubborn":
        sys.exit(0)
signal.signal(signal.SIGTERM, end)
open(name, "w").close()
while True:
    time.sleep(60)
"""


@pytest.fixture
def signals() -> Iterator[StopSignals]:
    with StopSignals() as signals:
        signals.calm()
        yield signals


def make_part(folder: Path, name: str, mood: str = "", patience: float = 10) -> Part:
    return Part(name, [sys.executable, "-c", CODE, name, mood], dict(os.environ), folder, patience=patience)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_parts_stop_together_and_the_last_after_them(tmp_path: Path, signals: StopSignals) -> None:
    """Neither of the first two ends before the other has been asked, too."""
    parts = [make_part(tmp_path, "last"), make_part(tmp_path, "one", "waits"), make_part(tmp_path, "two", "waits")]
    parts[0].stops_last = True
    names = [part.name for part in parts]
    supervisor = Supervisor(parts, None, signals, print)
    supervisor.run(lambda: next((n for n in names if not (tmp_path / n).exists()), None), lambda: send(signal.SIGTERM))
    supervisor.stop()
    order = (tmp_path / "order").read_text().split()
    assert (sorted(order[:2]), order[2:]) == (["one", "two"], ["last"])
    assert not any(part.alive for part in parts)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_stopping_signal_ends_the_run(tmp_path: Path, signals: StopSignals, number: signal.Signals) -> None:
    supervisor = Supervisor([], None, signals, print)
    supervisor.run(lambda: None, lambda: send(number))
    assert signals.stop
    assert not signals.hurry


def test_a_stubborn_part_is_killed_when_its_patience_is_over(tmp_path: Path, signals: StopSignals) -> None:
    said: list[str] = []
    part = make_part(tmp_path, "stone", "stubborn", patience=0.3)
    supervisor = Supervisor([part], None, signals, said.append)
    supervisor.run(lambda: None if (tmp_path / "stone").exists() else "the stone", lambda: send(signal.SIGTERM))
    supervisor.stop()
    assert said == ["stone did not stop within 0.3 s and is killed"]
    assert not part.alive


def test_a_second_signal_hurries(tmp_path: Path, signals: StopSignals) -> None:
    part = make_part(tmp_path, "stone", "stubborn", patience=600)
    supervisor = Supervisor([part], None, signals, print)
    supervisor.run(lambda: None if (tmp_path / "stone").exists() else "the stone", lambda: send(signal.SIGINT))

    def once_asked() -> None:
        until((tmp_path / "order").exists)
        send(signal.SIGINT)

    thread = threading.Thread(target=once_asked)
    thread.start()
    supervisor.stop()
    thread.join()
    assert not part.alive


def test_a_part_that_dies_is_started_again_and_ready_is_said_once(tmp_path: Path, signals: StopSignals) -> None:
    said: list[str] = []
    part = make_part(tmp_path, "cat")
    supervisor = Supervisor([part], None, signals, said.append)
    announced: list[int] = []

    def missing() -> str | None:
        return None if (tmp_path / "cat").exists() else "the cat"

    def announce() -> None:
        assert part.process is not None
        announced.append(part.process.pid)
        (tmp_path / "cat").unlink()
        part.process.kill()
        threading.Thread(target=stop_when_back).start()

    def stop_when_back() -> None:
        until((tmp_path / "cat").exists)
        send(signal.SIGTERM)

    supervisor.run(missing, announce)
    assert len(announced) == 1
    assert part.process is not None
    assert part.process.pid != announced[0]
    assert len(said) == 1
    assert said[0].startswith("cat was ended by SIGKILL")
    supervisor.stop()


def test_a_database_that_dies_is_started_again(data_dir: Path, signals: StopSignals) -> None:
    said: list[str] = []
    server = EmbeddedServer(data_dir)
    server.start()
    killed: list[int] = []

    def missing() -> str | None:
        if not killed:
            assert server.pid is not None
            killed.append(server.pid)
            os.kill(server.pid, signal.SIGKILL)
            return "the database"
        return None if server.is_up() else "the database"

    Supervisor([], server, signals, said.append).run(missing, lambda: send(signal.SIGTERM))
    assert server.is_up()
    assert server.pid != killed[0]
    assert said == ["the database is down; it starts again"]


def test_a_machine_that_is_short_for_a_moment_ends_nothing(
    data_dir: Path, tmp_path: Path, signals: StopSignals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process can be started and no file opened, not even to see whether the database is up."""
    monkeypatch.setattr("tasks.supervise.supervisor.DATABASE_PAUSE", 0.1)
    server = EmbeddedServer(data_dir)
    server.start()
    part = make_part(tmp_path, "cat")
    said: list[str] = []

    def say(sentence: str) -> None:
        said.append(sentence)
        if len(said) == 2:
            shortage.close()

    supervisor = Supervisor([part], server, signals, say)
    with ExitStack() as shortage:
        shortage.enter_context(no_open_files())
        supervisor.run(lambda: None if (tmp_path / "cat").exists() else "the cat", lambda: send(signal.SIGTERM))
    supervisor.stop()
    assert "cat cannot be started (Too many open files); next try in 0.5 s" in said
    assert len(said) > 1, "it spoke of the database too"
    assert all("Too many open files" in sentence for sentence in said), "a live database is not said to be down"
    assert (tmp_path / "order").read_text() == "cat\n"


def test_a_signal_during_preparation_ends_it_at_once() -> None:
    with pytest.raises(StopRequested), StopSignals():
        send(signal.SIGTERM)
        time.sleep(60)  # is cut short
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Dying:
    """Gets a signal while it is finalized, and goes on for a while after it."""

    def __del__(self) -> None:
        send(signal.SIGTERM)
        time.sleep(0.1)


def finalize_by_weakref() -> None:
    class Thing:
        """Anything."""

    thing = Thing()
    weakref.finalize(thing, send, signal.SIGTERM)
    del thing


def finalize_by_import() -> None:
    """The signal comes while the import system drops the lock of a module."""
    seen: list[str] = []

    def send_once(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if not seen and event == "call" and code.co_name == "cb" and "importlib" in code.co_filename:
            seen.append(code.co_filename)
            send(signal.SIGTERM)

    sys.setprofile(send_once)
    try:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module("this_module_is_nowhere")
    finally:
        sys.setprofile(None)
    assert seen


@pytest.mark.parametrize(
    "finalize",
    [lambda: Dying() and None, finalize_by_weakref, finalize_by_import],
    ids=["__del__", "weakref", "import"],
)
def test_a_signal_within_a_finalizer_is_not_swallowed(finalize: Callable[[], None]) -> None:
    with pytest.raises(StopRequested), StopSignals():
        finalize()
        time.sleep(60)  # is cut short
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_the_death_of_a_child_ends_the_wait(tmp_path: Path, signals: StopSignals) -> None:
    part = Part("brief", [sys.executable, "-c", ""], dict(os.environ), tmp_path)
    began = time.monotonic()
    part.tend()
    signals.wait(60)
    assert time.monotonic() - began < 30
    until(lambda: not part.alive)
    part.kill()
