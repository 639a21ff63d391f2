"""The poison drill in its short form."""

from __future__ import annotations

from tests.drills import poison
from tests.drills.report import broken


def test_a_poison_task_dies_with_its_third_process_and_alone() -> None:
    assert broken(poison.run(poison.Plan())) == []
