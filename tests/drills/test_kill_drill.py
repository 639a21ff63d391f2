"""The short drill, and the proof that its checker can see: a run whose fence is taken out."""

from __future__ import annotations

from dataclasses import replace

from tests.drills import kill
from tests.drills.report import told


def tell(report: kill.Report) -> list[str]:
    """The whole report for the log of a failed run; the promises that were broken, those of speed left out."""
    told([*report.findings, *report.figures], *report.more())
    timeless = [figure for figure in report.figures if "seconds" not in figure.name]
    return [str(finding) for finding in (*report.findings, *timeless) if not finding.held]


def test_the_promise_holds_while_everything_is_killed() -> None:
    report = kill.run(kill.Plan())
    assert tell(report) == []
    assert sum(report.kills.values()) >= 15
    assert report.mains_restarted > 0
    assert report.late_saves_refused > 0
    assert report.orphan_seconds is not None
    # On a busy machine, as much longer as it takes to start the tree that finds it, should that be killed as well.
    assert report.orphan_seconds < 2 * kill.Plan.lease + 2 * report.start_seconds
    # The provider answers well whoever asks, and nobody is condemned for what was killed under it.
    assert report.statuses == {"succeeded": 300}


#: A worker is frozen with its slots full and wakes up while others run its tasks: calls take long enough for that.
FREEZE_ONLY = replace(
    kill.Plan(), tasks=60, outages=(), sessions_seconds=0, kill_seconds=0, delay="3000-6000", settle_seconds=30
)
#: Which of these depends on which of the two ends comes first: the database refuses the second success by itself.
BROKEN_WITHOUT_A_FENCE = {
    "two recorded successes", "broken histories", "attempts that overlap", "attempts left running"
}  # fmt: skip


def test_without_the_fence_the_checker_finds_the_damage() -> None:
    report = kill.run(FREEZE_ONLY, command=("-m", "tests.drills.unfenced", "qcluster"))
    tell(report)
    assert report.late_saves_refused == 0
    assert {finding.name for finding in report.findings if not finding.held} & BROKEN_WITHOUT_A_FENCE


def test_with_the_fence_the_same_run_is_clean() -> None:
    report = kill.run(FREEZE_ONLY)
    assert tell(report) == []
    assert report.late_saves_refused > 0
    assert report.statuses == {"succeeded": 60}
