"""One child and its parent: what happens in the moments when either is born or dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.tasks.engine.tree import ROOT, wait_until


def run(case: str, report: Path) -> str:
    report.touch()
    subprocess.run([sys.executable, "-m", "tests.tasks.engine.births", case, str(report)], cwd=ROOT, check=True)
    return report.read_text()


def test_a_stop_signal_at_birth_is_not_lost(tmp_path: Path) -> None:
    """The child inherits that the sentinel ignores SIGTERM; a signal before it said otherwise must still end it."""
    exit_code, held_by_parent = run("signalled", tmp_path / "report").split()
    assert exit_code == "-15"
    assert held_by_parent == "0"


@pytest.mark.parametrize("case", ["late", "watch"])
def test_an_orphan_dies(tmp_path: Path, case: str) -> None:
    """``late``: the parent died before the kernel was asked. ``watch``: where there is no kernel to ask."""
    pid = int(run(case, tmp_path / "report"))

    def gone() -> bool:
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    wait_until(gone, 3, "the orphan's end")
    assert (tmp_path / "report").read_text() == str(pid)


def test_a_process_is_called_by_what_it_does() -> None:
    """By ``ps``, and by whoever looks for the one that takes all the memory."""
    code = (
        "import time; from tasks.engine.process import Child;"
        " child = Child(time.sleep, (60,), name='worker-3'); child.start(); print(child.pid, flush=True); child.join()"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        try:
            wait_until(lambda: child.name() == "worker-3", 10, "its name")
        finally:
            parent.kill()
