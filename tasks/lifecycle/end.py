"""How one attempt ended, as a value: decided by the process that ran it, recorded by ``finish``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from tasks.lifecycle.brakes import Hold
from tasks.lifecycle.log import LogLine
from tasks.states import Outcome, Reason

RETRY, SNOOZE, DIE = "retry", "snooze", "die"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRecord:
    """A failure as it is stored: masked, cut, cleaned. ``failure`` also carries the fingerprint's ``title``."""

    code: str
    fingerprint: str
    last_error: str
    failure: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an attempt consumed, and the trail of its model calls (fields of ``ModelCall`` but the attempt)."""

    repairs: int = 0
    mended: list[str] = field(default_factory=list)
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Decimal | None = None
    calls: Sequence[dict[str, Any]] = ()


# Not frozen: making one would take twice as long, and each attempt makes one.
@dataclass(slots=True, kw_only=True)
class End:
    """How one attempt ended; nobody changes it. For a failure ``action`` says what follows: retry, snooze or die.

    ``hold``: this failure stops its provider. The one that begins the hold dies; while the hold stands, the same answer
    snoozes its task for ``hold_snooze_seconds`` instead. ``started``: whether the work may have had an effect (asked of
    interrupted attempts). ``log``: its lines that may not be stored yet; they are kept also of an end that is refused.
    """

    task_id: UUID
    attempt_id: int
    outcome: Outcome
    result_text: str | None = None
    failed: FailureRecord | None = None
    action: str = ""
    delay_seconds: float = 0.0
    reason: Reason | None = None
    decision: dict[str, Any] | None = None
    provider: str | None = None
    cool_seconds: float | None = None
    hold: Hold | None = None
    hold_snooze_seconds: float = 1.0
    started: bool = True
    usage: Usage = field(default_factory=Usage)
    log: Sequence[LogLine] = ()
