"""The proxy drill in its short form."""

from __future__ import annotations

from tests.drills import proxy
from tests.drills.report import broken


def test_a_line_that_swallows_is_cut_and_is_slow() -> None:
    assert broken(proxy.run(proxy.Plan())) == []
