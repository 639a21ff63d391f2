"""Who replaced whom: read from the kills and the births."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

from tests.drills.census import TICK_SECONDS, Birth, began, replacements
from tests.drills.chaos import Kill

SENTINEL = 10


def killed(at: float, role: str, pid: int) -> Kill:
    return Kill(at, role, pid, SENTINEL)


def born(pid: int, at: float, name: str = "worker-2", parent: int = SENTINEL) -> Birth:
    return Birth(pid, parent, at, name)


WORKER, NEXT = killed(5.0, "worker", 11), born(21, 5.5)


@pytest.mark.parametrize(
    ("kills", "births", "expected"),
    [
        ([WORKER], [NEXT], {11: 0.5}),
        ([WORKER], [born(11, 1.0), NEXT], {11: 0.5}),
        ([WORKER], [born(21, 4.995)], {11: 0.0}),
        ([WORKER], [born(22, 5.2, "caretaker-3"), born(21, 6.0)], {11: 1.0}),
        ([WORKER], [born(99, 5.2, "deaths")], {11: 15.0}),
        ([WORKER], [born(21, 5.2, parent=77)], {11: 15.0}),
        ([WORKER, killed(6.0, "sentinel", SENTINEL)], [], {}),
        ([WORKER, killed(9.0, "main", 1)], [], {11: 4.0}),
        ([WORKER, killed(5.2, "caretaker", 12)], [NEXT, born(22, 7.2, "caretaker-3")], {11: 0.5, 12: 2.0}),
        ([WORKER, killed(5.6, "worker", 21)], [NEXT, born(23, 6.6)], {11: 0.5, 21: 1.0}),
        ([WORKER, killed(6.0, "child", 88)], [born(88, 5.9, "sentinel")], {11: 0.9}),
    ],
    ids=[
        "replaced", "those before do not count", "in the same tick",
        "by the same role", "an errand is no heir", "no heir of another tree",
        "its sentinel died with it", "its sentinel lived and did nothing", "each by its own", "one after the other",
        "by one that was killed before it had a name",
    ],
)  # fmt: skip
def test_replacements(kills: list[Kill], births: list[Birth], expected: dict[int, float]) -> None:
    found = replacements(kills, births, over=20.0)
    assert {pid: round(seconds, 3) for pid, seconds in found.items()} == expected


def test_a_birth_is_told_by_the_wall_clock() -> None:
    before = time.time()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        at = began(psutil.Process(child.pid))
        after = time.time()
        child.communicate(b"\n")
    assert before - TICK_SECONDS <= at <= after
