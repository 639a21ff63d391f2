"""The checker itself: a good log passes, and each kind of bad log is caught by its own promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.drills.checker import AttemptRow, CallRow, EventRow, Evidence, TaskRow, check

GOOD = Evidence(
    submitted=("t",),
    tasks=(TaskRow("t", "succeeded"),),
    attempts=(
        AttemptRow(1, "t", 1, "lost", False, 1.0, 3.0),
        AttemptRow(2, "t", 1, "succeeded", True, 3.5, 5.0),
    ),
    events=(
        EventRow("t", 1, "submitted", "", "ready", 0.9),
        EventRow("t", 2, "claimed", "ready", "running", 1.0),
        EventRow("t", 3, "rescued", "running", "unknown", 3.0),
        EventRow("t", 4, "requeued", "unknown", "ready", 3.0),
        EventRow("t", 5, "claimed", "ready", "running", 3.5),
        EventRow("t", 6, "succeeded", "running", "succeeded", 5.0),
        EventRow("t", 7, "late_save_refused", "", "", 6.0),
    ),
    calls=(
        CallRow("t", 1, "request", 1.1),
        CallRow("t", 2, "request", 3.6),
        CallRow("t", 1, "closed", 4.0),
        CallRow("t", 2, "answered", 4.9),
    ),
)
SECOND = AttemptRow(3, "t", 1, "succeeded", True, 5.5, 6.0)

BAD = [
    ("lost", replace(GOOD, submitted=("t", "gone"))),
    ("lost", replace(GOOD, tasks=(TaskRow("t", "ready"),))),
    ("two recorded successes", replace(GOOD, attempts=(*GOOD.attempts, SECOND))),
    (
        "two recorded successes",
        replace(GOOD, events=(*GOOD.events, EventRow("t", 8, "succeeded", "running", "succeeded", 7.0))),
    ),
    ("called after a recorded success", replace(GOOD, calls=(*GOOD.calls, CallRow("t", 1, "request", 5.2)))),
    (
        "claimed after a recorded success",
        replace(GOOD, attempts=(*GOOD.attempts, AttemptRow(3, "t", 1, "lost", False, 5.5, 6.0))),
    ),
    ("counted attempts over budget", replace(GOOD, tasks=(TaskRow("t", "succeeded", 0),))),
    ("broken histories", replace(GOOD, events=GOOD.events[:2] + GOOD.events[3:])),
    (
        "broken histories",
        replace(GOOD, events=(*GOOD.events[:3], EventRow("t", 4, "claimed", "ready", "running", 3.2))),
    ),
    ("broken histories", replace(GOOD, tasks=(TaskRow("t", "dead"),))),
    ("attempts left running", replace(GOOD, attempts=(*GOOD.attempts, replace(SECOND, outcome="running")))),
    ("attempts that overlap", replace(GOOD, attempts=(replace(GOOD.attempts[0], finished_at=4.0), GOOD.attempts[1]))),
    ("successes that the provider never answered", replace(GOOD, calls=GOOD.calls[:3])),
]


def broken(evidence: Evidence) -> set[str]:
    """The names of the promises that this evidence breaks."""
    return {finding.name for finding in check(evidence) if not finding.held}


def test_a_good_log_passes() -> None:
    assert broken(GOOD) == set()


@pytest.mark.parametrize(("name", "evidence"), BAD)
def test_a_bad_log_is_caught(name: str, evidence: Evidence) -> None:
    assert name in broken(evidence)


def test_every_promise_has_a_bad_log() -> None:
    assert {finding.name for finding in check(GOOD)} == {name for name, _ in BAD}


def test_a_finding_says_how_often_and_where() -> None:
    found = next(finding for finding in check(replace(GOOD, submitted=("t", "gone"))) if finding.name == "lost")
    assert str(found) == "BROKEN lost: 1 (gone is gone)"
