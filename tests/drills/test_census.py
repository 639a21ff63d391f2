"""Who replaced whom: read from the kills and the births."""

from __future__ import annotations

import pytest

from tests.drills.census import Birth, replacements
from tests.drills.chaos import Kill

SENTINEL = 10
ROLES = {11: "worker", 12: "caretaker", 21: "worker", 22: "caretaker", 23: "worker"}


def killed(at: float, role: str, pid: int) -> Kill:
    return Kill(at, role, pid, SENTINEL)


WORKER, NEXT = killed(5.0, "worker", 11), Birth(21, SENTINEL, 5.5)


@pytest.mark.parametrize(
    ("kills", "births", "expected"),
    [
        ([WORKER], [NEXT], {11: 0.5}),
        ([WORKER], [Birth(11, SENTINEL, 1.0), NEXT], {11: 0.5}),
        ([WORKER], [Birth(22, SENTINEL, 5.2), Birth(21, SENTINEL, 6.0)], {11: 1.0}),
        ([WORKER], [Birth(99, SENTINEL, 5.2)], {11: 15.0}),
        ([WORKER], [Birth(21, 77, 5.2)], {11: 15.0}),
        ([WORKER, killed(6.0, "sentinel", SENTINEL)], [], {}),
        ([WORKER, killed(9.0, "main", 1)], [], {11: 4.0}),
        ([WORKER, killed(5.2, "caretaker", 12)], [NEXT, Birth(22, SENTINEL, 7.2)], {11: 0.5, 12: 2.0}),
        ([WORKER, killed(5.6, "worker", 21)], [NEXT, Birth(23, SENTINEL, 6.6)], {11: 0.5, 21: 1.0}),
        ([WORKER, killed(6.0, "child", 88)], [Birth(88, SENTINEL, 5.9)], {11: 0.9}),
    ],
    ids=[
        "replaced", "those before do not count", "by the same role", "an errand is no heir", "no heir of another tree",
        "its sentinel died with it", "its sentinel lived and did nothing", "each by its own", "one after the other",
        "by one that was killed before it had registered",
    ],
)  # fmt: skip
def test_replacements(kills: list[Kill], births: list[Birth], expected: dict[int, float]) -> None:
    found = replacements(kills, births, ROLES, over=20.0)
    assert {pid: round(seconds, 3) for pid, seconds in found.items()} == expected
