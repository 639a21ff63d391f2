"""The stop drill in its short form."""

from __future__ import annotations

from tests.drills import stop
from tests.drills.report import broken


def test_a_stop_loses_nothing_and_leaves_nothing() -> None:
    assert broken(stop.run(stop.Plan())) == []
