"""Reads what a drill left behind and says which promises held. Pure: the same evidence gives the same findings.

The witness is the provider's own log: it knows nothing of the database, so what it saw being asked cannot have been
made to fit. Times of both are of one machine's wall clock, in seconds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tasks.states import FINAL


@dataclass(frozen=True)
class TaskRow:
    """A task at the end of the drill."""

    id: str
    status: str
    max_attempts: int = 3


@dataclass(frozen=True)
class AttemptRow:
    """An attempt at the end of the drill."""

    id: int
    task: str
    cycle: int
    outcome: str
    counted: bool
    started_at: float
    finished_at: float | None


@dataclass(frozen=True)
class EventRow:
    """One event of a task's history."""

    task: str
    seq: int
    type: str
    from_status: str
    to_status: str
    at: float


@dataclass(frozen=True)
class CallRow:
    """One line of the witness: ``event`` is request, answered, cut or closed."""

    task: str
    attempt: int
    event: str
    at: float


@dataclass(frozen=True)
class Evidence:
    """All that a drill left. ``submitted``: the ids that were printed by the submit command."""

    submitted: Sequence[str]
    tasks: Sequence[TaskRow]
    attempts: Sequence[AttemptRow]
    events: Sequence[EventRow]
    calls: Sequence[CallRow]


@dataclass(frozen=True)
class Finding:
    """One promise: how often it was broken, and where to look; or ``shown``, a figure that speaks for itself."""

    name: str
    broken: Sequence[str] = field(default=())
    shown: str = ""

    @property
    def held(self) -> bool:
        """Whether it was never broken."""
        return not self.broken

    def __str__(self) -> str:
        examples = f" ({'; '.join(self.broken[:3])})" if self.broken else ""
        return f"{'held  ' if self.held else 'BROKEN'} {self.name}: {self.shown or len(self.broken)}{examples}"


def figure(name: str, value: float, held: bool) -> Finding:
    """A promise that one measured figure keeps or breaks."""
    return Finding(name, () if held else ("not as promised",), str(value))


def check(evidence: Evidence) -> list[Finding]:
    """A finding for each promise, broken or not, in a fixed order."""
    return [Finding(name, tuple(rule(evidence))) for name, rule in RULES]


def lost(evidence: Evidence) -> Iterable[str]:
    """Submitted tasks that are gone, or that reached no end."""
    status = {task.id: task.status for task in evidence.tasks}
    for task in evidence.submitted:
        if status.get(task) not in FINAL:
            yield f"{task} is {status.get(task, 'gone')}"


def double_successes(evidence: Evidence) -> Iterable[str]:
    """Tasks with two recorded successes, as attempts or as events."""
    attempts = Counter(attempt.task for attempt in evidence.attempts if attempt.outcome == "succeeded")
    events = Counter(event.task for event in evidence.events if event.type == "succeeded")
    for task in sorted(attempts.keys() | events.keys()):
        if attempts[task] > 1 or events[task] > 1:
            yield f"{task}: {attempts[task]} attempts, {events[task]} events"


def started_after_success(evidence: Evidence) -> Iterable[str]:
    """Calls that the provider got after the task's success was recorded."""
    recorded = _successes(evidence)
    for call in evidence.calls:
        if call.event == "request" and call.at > recorded.get(call.task, float("inf")):
            yield f"{call.task} by attempt {call.attempt}, {call.at - recorded[call.task]:.3f} s later"


def claimed_after_success(evidence: Evidence) -> Iterable[str]:
    """Attempts that began after the task's success was recorded."""
    recorded = _successes(evidence)
    for attempt in evidence.attempts:
        if attempt.outcome != "succeeded" and attempt.started_at > recorded.get(attempt.task, float("inf")):
            yield f"{attempt.task}: attempt {attempt.id}"


def over_budget(evidence: Evidence) -> Iterable[str]:
    """Cycles with more counted attempts than the kind allows."""
    allowed = {task.id: task.max_attempts for task in evidence.tasks}
    counted = Counter((attempt.task, attempt.cycle) for attempt in evidence.attempts if attempt.counted)
    for (task, cycle), count in sorted(counted.items()):
        if count > allowed.get(task, 0):
            yield f"{task} cycle {cycle}: {count}"


def broken_histories(evidence: Evidence) -> Iterable[str]:
    """Histories with a gap in their numbers, a move that does not begin where the last one ended, or a wrong end."""
    status = {task.id: task.status for task in evidence.tasks}
    for task, events in _histories(evidence).items():
        if [event.seq for event in events] != list(range(1, len(events) + 1)):
            yield f"{task}: numbers {[event.seq for event in events]}"
            continue
        stands = ""
        for event in events:
            if event.from_status != event.to_status and event.from_status != stands:
                yield f"{task}: {event.type} from {event.from_status} while {stands}"
            stands = event.to_status or stands
        if task in status and stands != status[task]:
            yield f"{task}: the history ends {stands}, the task is {status[task]}"


def left_running(evidence: Evidence) -> Iterable[str]:
    """Attempts that never ended."""
    return (f"attempt {attempt.id}" for attempt in evidence.attempts if attempt.outcome == "running")


def overlapping(evidence: Evidence) -> Iterable[str]:
    """Tasks that the database took for run by two at once."""
    by_task: dict[str, list[AttemptRow]] = defaultdict(list)
    for attempt in sorted(evidence.attempts, key=lambda attempt: attempt.id):
        by_task[attempt.task].append(attempt)
    for task, attempts in by_task.items():
        for earlier, later in pairwise(attempts):
            if earlier.finished_at is None or later.started_at < earlier.finished_at:
                yield f"{task}: attempts {earlier.id} and {later.id}"


def unwitnessed(evidence: Evidence) -> Iterable[str]:
    """Recorded successes whose answer the provider never gave to that attempt."""
    answered = {(call.task, call.attempt) for call in evidence.calls if call.event == "answered"}
    for attempt in evidence.attempts:
        if attempt.outcome == "succeeded" and (attempt.task, attempt.id) not in answered:
            yield f"{attempt.task}: attempt {attempt.id}"


RULES: Sequence[tuple[str, Callable[[Evidence], Iterable[str]]]] = (
    ("lost", lost),
    ("two recorded successes", double_successes),
    ("called after a recorded success", started_after_success),
    ("claimed after a recorded success", claimed_after_success),
    ("counted attempts over budget", over_budget),
    ("broken histories", broken_histories),
    ("attempts left running", left_running),
    ("attempts that overlap", overlapping),
    ("successes that the provider never answered", unwitnessed),
)


def repeated(evidence: Evidence, tasks: Iterable[str]) -> list[str]:
    """Of these tasks, those whose call the provider got more than once: paid for again."""
    asked = Counter(call.task for call in evidence.calls if call.event == "request")
    return [f"{task}: {asked[task]} calls" for task in tasks if asked[task] > 1]


def _successes(evidence: Evidence) -> dict[str, float]:
    """When each task's first success was recorded."""
    times: dict[str, float] = {}
    for event in evidence.events:
        if event.type == "succeeded":
            times[event.task] = min(event.at, times.get(event.task, float("inf")))
    return times


def _histories(evidence: Evidence) -> dict[str, list[EventRow]]:
    histories: dict[str, list[EventRow]] = defaultdict(list)
    for event in sorted(evidence.events, key=lambda event: (event.task, event.seq)):
        histories[event.task].append(event)
    return histories
