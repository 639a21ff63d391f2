"""The clock drill in its short form."""

from __future__ import annotations

import pytest

from tests.drills import clock
from tests.drills.report import broken


@pytest.mark.skipif(clock.library() is None, reason="needs libfaketime: apt-get install libfaketime")
def test_a_wrong_clock_changes_nothing() -> None:
    assert broken(clock.run(clock.Plan())) == []
