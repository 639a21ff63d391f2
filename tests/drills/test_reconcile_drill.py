"""The short reconcile drill, and the proof that it can see an effect that happens twice."""

from __future__ import annotations

import sys

from tests.drills import reconcile


def say(line: str) -> None:
    """Tell what the drill does, for the log of a failed run."""
    sys.stdout.write(line + "\n")


def test_each_effect_happens_once_whoever_is_killed_around_it() -> None:
    report = reconcile.run(reconcile.Plan(), say=say)
    say("\n".join(report.lines()))
    assert [str(finding) for finding in report.findings if not finding.held] == []
    assert report.kills.total() == 6
    # Kills came by turns after an effect and before one.
    assert report.events["reconciled"] > 0
    assert report.events["not_done"] > 0
    # A task under which three processes were killed is taken for their cause, as everywhere.
    assert report.statuses["succeeded"] + report.reasons.get("lease_expired", 0) == 60
    assert report.survivors == []


def test_without_asking_the_drill_sees_effects_twice() -> None:
    report = reconcile.run(reconcile.Plan(tasks=30, kills=3, asked=False), say=say)
    say("\n".join(report.lines()))
    broken = {finding.name for finding in report.findings if not finding.held}
    assert broken == {"effects that happened twice"}
    assert report.events["reconciled"] + report.events["not_done"] == 0
