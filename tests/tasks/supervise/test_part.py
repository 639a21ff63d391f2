"""A part is a real child process: started, found dead, started again, stopped with all it started."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tasks.supervise.part import Part
from tests.tasks.embedded.test_server import alive, until
from tests.tasks.supervise.shortage import no_open_files

MakePart = Callable[..., Part]


@pytest.fixture
def make_part(tmp_path: Path) -> Iterator[MakePart]:
    """Makes parts that run a piece of Python, and ends them after the test."""
    made: list[Part] = []

    def make(code: str, *words: str, **settings: object) -> Part:
        part = Part("thing", [sys.executable, "-c", code, *words], dict(os.environ), tmp_path, **settings)  # type: ignore[arg-type]
        made.append(part)
        return part

    yield make
    for part in made:
        part.kill()


def tend_until_said(part: Part, seconds: float = 15) -> str:
    deadline = time.monotonic() + seconds
    while (said := part.tend()) is None:
        assert time.monotonic() < deadline, "it did not die"
        time.sleep(0.01)
    return said


def test_a_part_that_dies_is_named_and_started_again(make_part: MakePart) -> None:
    part = make_part("import time; time.sleep(60)")
    part.tend()
    assert part.alive
    assert part.process is not None
    first = part.process.pid
    os.kill(first, signal.SIGKILL)
    assert tend_until_said(part).startswith("thing was ended by SIGKILL after 0.")
    assert part.tend() is None
    assert not part.alive, "it was started again without a pause"
    until(lambda: part.tend() or part.alive)
    assert part.process.pid != first


def test_the_pauses_double(make_part: MakePart) -> None:
    part = make_part("raise SystemExit(3)")
    said = [tend_until_said(part) for _ in range(3)]
    assert [sentence.split(" after ")[0] for sentence in said] == ["thing ended with code 3"] * 3
    assert [sentence.split("next start in ")[1] for sentence in said] == ["0.5 s", "1 s", "2 s"]


def test_one_that_cannot_be_started_is_tried_again_later(make_part: MakePart) -> None:
    part = make_part("import time; time.sleep(60)", heard=print)
    with no_open_files():
        said = [tend_until_said(part) for _ in range(2)]
        assert part.tend() is None, "it was tried again without a pause"
    assert said == [
        "thing cannot be started (Too many open files); next try in 0.5 s",
        "thing cannot be started (Too many open files); next try in 1 s",
    ]
    assert not part.alive
    until(lambda: part.tend() or part.alive)


def test_its_lines_are_heard_whole(make_part: MakePart) -> None:
    heard: list[str] = []
    code = "import sys; w = sys.stdout; w.write('one\\ntw'); w.flush(); w.write('o\\n'); w.flush(); sys.stdin.read()"
    part = make_part(code + "; import time; time.sleep(60)", heard=heard.append)
    part.tend()
    until(lambda: part.listen() or len(heard) == 2)
    assert heard == ["one", "two"]


def test_the_last_lines_of_a_dying_part_are_heard(make_part: MakePart) -> None:
    heard: list[str] = []
    part = make_part("print('goodbye')", heard=heard.append)
    tend_until_said(part)
    assert heard == ["goodbye"]


def test_a_part_that_writes_a_lot_is_not_blocked(make_part: MakePart) -> None:
    heard: list[str] = []
    part = make_part("for _ in range(2000): print('x' * 999)", heard=heard.append)
    part.tend()
    until(lambda: part.listen() or len(heard) == 2000)
    assert {len(line) for line in heard} == {999}


def test_terminate_lets_it_end_by_itself(make_part: MakePart, tmp_path: Path) -> None:
    code = (
        "import signal, sys, time, pathlib\n"
        "def end(*_): pathlib.Path('ended').touch(); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end); pathlib.Path('running').touch(); time.sleep(60)"
    )
    part = make_part(code)
    part.tend()
    until((tmp_path / "running").exists)
    part.terminate()
    until(lambda: not part.alive)
    assert (tmp_path / "ended").exists()


def test_kill_reaches_what_a_dead_part_had_started(make_part: MakePart, tmp_path: Path) -> None:
    code = (
        "import subprocess, pathlib\n"
        "child = subprocess.Popen(['sleep', '300'])\n"
        "pathlib.Path('new').write_text(str(child.pid)); pathlib.Path('new').rename('child'); child.wait()"
    )
    part = make_part(code)
    part.tend()
    until((tmp_path / "child").exists)
    child = int((tmp_path / "child").read_text())
    assert part.process is not None
    os.kill(part.process.pid, signal.SIGKILL)
    tend_until_said(part)
    assert alive(child)
    part.kill()
    until(lambda: not alive(child))


def test_ctrl_c_in_the_terminal_does_not_reach_it(make_part: MakePart) -> None:
    part = make_part("import time; time.sleep(60)")
    part.tend()
    assert part.process is not None
    assert os.getpgid(part.process.pid) != os.getpgid(0)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
def test_it_ends_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, sys, time, pathlib; from tasks.supervise.part import Part\n"
        "part = Part('p', ['sleep', '300'], dict(os.environ), pathlib.Path('/'))\n"
        "part.tend(); print(part.process.pid, flush=True); time.sleep(300)"
    )
    root = Path(__file__).parents[3]
    supervisor = psutil.Popen([sys.executable, "-c", code], cwd=root, stdout=-1, text=True)
    child = int(supervisor.stdout.readline())
    # Until the tether has become the program itself, it may still be asking the kernel.
    until(lambda: psutil.Process(child).name() == "sleep")
    supervisor.kill()
    supervisor.communicate()
    until(lambda: not alive(child))
