"""The words of the state machine. Pure: no Django, no database.

```
submit ─┬─> scheduled ──due──> ready ──claim──> running ─┬─> succeeded
        ├────────────────────> ready <─interrupted (drain)┤
        └─gate──> skipped        ▲                       ├─> retryable ──due──> ready     (retry, or snooze at no cost)
                                 │                       ├─> waiting ──answer, children, time──> ready
                                 │                       ├─> dead ──reprocess, next cycle──> ready
                                 └──── unknown <─lease lost┘
unknown ──its handler says: done──> succeeded; not done──> ready; nobody can tell──> dead
cancelled <── scheduled | ready | retryable | waiting | unknown; running once its worker has aborted the call
```
"""

from enum import StrEnum


class Status(StrEnum):
    """Where a task stands."""

    SCHEDULED = "scheduled"
    READY = "ready"
    RUNNING = "running"
    RETRYABLE = "retryable"
    WAITING = "waiting"
    UNKNOWN = "unknown"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class Outcome(StrEnum):
    """How an attempt ended."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SNOOZED = "snoozed"
    INTERRUPTED = "interrupted"
    LOST = "lost"
    CANCELLED = "cancelled"


class Reason(StrEnum):
    """Why a task died."""

    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    NOT_RETRYABLE = "not_retryable"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    EXPIRED = "expired"
    OUTCOME_UNKNOWN = "outcome_unknown"
    LEASE_EXPIRED = "lease_expired"
    VETOED = "vetoed"
    UNSTORABLE = "unstorable"
    COMPENSATION_FAILED = "compensation_failed"


class Truth(StrEnum):
    """What became of work whose process vanished, as its handler's reconcile function tells."""

    DONE = "done"
    NOT_DONE = "not_done"
    STILL_UNKNOWN = "still_unknown"


class LetterState(StrEnum):
    """Where a dead letter stands."""

    OPEN = "open"
    REPROCESSED = "reprocessed"
    RECOVERED = "recovered"
    DIED_AGAIN = "died_again"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"


class Level(StrEnum):
    """How far a failure spreads: one request, one session, the whole system."""

    L1 = "L1"
    L2 = "L2"
    L3 = "L3"


class Cause(StrEnum):
    """Whose fault it is."""

    INFRASTRUCTURE = "infrastructure"
    INTEGRATION = "integration"
    INPUT = "input"
    MODEL = "model"


FINAL = frozenset({Status.SUCCEEDED, Status.DEAD, Status.CANCELLED, Status.SKIPPED})
#: What a cycle's end leaves for ever: only reprocess leaves ``dead``.
IRREVERSIBLE = FINAL - {Status.DEAD}
#: Statuses without an attempt under way from which a task may die or be cancelled.
PENDING = frozenset({Status.SCHEDULED, Status.READY, Status.RETRYABLE, Status.WAITING, Status.UNKNOWN})
#: Outcomes that use up the budget of a cycle.
COUNTED = frozenset({Outcome.FAILED, Outcome.SUCCEEDED})
