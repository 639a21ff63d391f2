"""What follows a failure: try again, put off, or die. Pure: everything it weighs is an argument, times are seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from tasks.errors.codes import CodeSpec
from tasks.errors.hints import LONGEST_SECONDS
from tasks.states import Reason

#: No retry and no snooze starts sooner than this after the failure.
MINIMUM_GAP_SECONDS = 0.1
#: Beyond this exponent every backoff is at its maximum; the power itself would overflow.
EXPONENT_LIMIT = 64
#: No delay is longer, whatever is configured: what follows must be a date that every reader can show.
LONGEST_DELAY_SECONDS = 366 * 86_400.0
#: A provider that names a time and refuses again is believed this often in a row, then backoff counts as well.
HINTS_BELIEVED = 2


@dataclass(frozen=True)
class RetryPolicy:
    """A kind's retry settings. ``jitter`` is the part of a delay that may be taken off, 0 to 1."""

    max_attempts: int = 3
    initial_interval_seconds: float = 1.0
    backoff_coefficient: float = 2.0
    maximum_interval_seconds: float = 30.0
    jitter: float = 0.5
    deadline_seconds: float = 86_400.0


class Action(StrEnum):
    """What becomes of the task: a retry uses the budget, a snooze does not."""

    RETRY = "retry"
    SNOOZE = "snooze"
    DIE = "die"


@dataclass(frozen=True)
class Decision:
    """``reason`` only with DIE, ``delay_seconds`` only without. ``cool_seconds``: the provider rests that long."""

    action: Action
    delay_seconds: float = 0.0
    reason: Reason | None = None
    cool_seconds: float | None = None


def decide(
    *,
    policy: RetryPolicy,
    spec: CodeSpec,
    counted_failures: int,
    snoozes_in_a_row: int,
    elapsed_seconds: float,
    hint_seconds: float | None,
    random: float,
    repaired: bool = False,
) -> Decision:
    """Decide on one failure.

    ``counted_failures`` of this cycle and ``snoozes_in_a_row`` both include this one, if it is of their sort;
    ``elapsed_seconds`` run from the first claim of the cycle; ``random`` is from [0, 1). ``repaired``: the answer was
    already sent back for repair as often as the kind allows, so a malformed one is not asked for again. The code
    decides whether before any hint is read; a hint is believed for a day at most.
    """
    if not spec.retryable or (repaired and spec.code == "AI_OUTPUT_MALFORMED"):
        return Decision(Action.DIE, reason=Reason.NOT_RETRYABLE)
    if not spec.uses_budget:
        return snooze_decision(
            policy=policy,
            snoozes_in_a_row=snoozes_in_a_row,
            elapsed_seconds=elapsed_seconds,
            random=random,
            hint_seconds=hint_seconds,
            spec=spec,
        )
    if counted_failures >= attempts_allowed(policy, spec):
        return Decision(Action.DIE, reason=Reason.ATTEMPTS_EXHAUSTED)
    wait = max(backoff_seconds(policy, counted_failures, random, spec), _believed(hint_seconds) or 0.0)
    return _in_time(Decision(Action.RETRY, wait), policy, elapsed_seconds)


def snooze_decision(
    *,
    policy: RetryPolicy,
    snoozes_in_a_row: int,
    elapsed_seconds: float,
    random: float,
    hint_seconds: float | None = None,
    spec: CodeSpec | None = None,
) -> Decision:
    """Put the task off without using budget: a rate limit, or any failure that meets a hold or an open breaker.

    With a hint: that long, and the provider cools for it where the code says so. Without: the kind's backoff, its
    exponent the snoozes in a row. The deadline bounds a snooze as it bounds a retry.
    """
    backoff = backoff_seconds(policy, snoozes_in_a_row, random, spec)
    hint = _believed(hint_seconds)
    if hint is None:
        return _in_time(Decision(Action.SNOOZE, backoff), policy, elapsed_seconds)
    wait = max(hint, MINIMUM_GAP_SECONDS, backoff if snoozes_in_a_row > HINTS_BELIEVED else 0.0)
    cool = max(hint, MINIMUM_GAP_SECONDS) if spec is not None and spec.cools_provider else None
    return _in_time(Decision(Action.SNOOZE, wait, cool_seconds=cool), policy, elapsed_seconds)


def attempts_allowed(policy: RetryPolicy, spec: CodeSpec) -> int:
    """The budget of a cycle for this code: the smaller of the code's and the kind's."""
    return policy.max_attempts if spec.max_attempts is None else min(spec.max_attempts, policy.max_attempts)


def backoff_seconds(policy: RetryPolicy, number: int, random: float, spec: CodeSpec | None = None) -> float:
    """The delay after the ``number``-th failure or snooze: initial × coefficient^(number − 1), at most the maximum.

    The code's values hold where it sets any, else the kind's. The whole is shortened by up to ``jitter``, then kept at
    the minimum gap.
    """
    initial = _first(spec.initial_interval_seconds if spec else None, policy.initial_interval_seconds)
    coefficient = _first(spec.backoff_coefficient if spec else None, policy.backoff_coefficient)
    maximum = _first(spec.maximum_interval_seconds if spec else None, policy.maximum_interval_seconds)
    base = min(_grown(initial, coefficient, min(max(number - 1, 0), EXPONENT_LIMIT)), maximum)
    return min(max(base * (1.0 - policy.jitter * random), MINIMUM_GAP_SECONDS), LONGEST_DELAY_SECONDS)


def _believed(hint_seconds: float | None) -> float | None:
    """The hint, at most a day; None for what is no time: NaN, infinite, negative."""
    if hint_seconds is None or not math.isfinite(hint_seconds) or hint_seconds < 0:
        return None
    return min(hint_seconds, LONGEST_SECONDS)


def _grown(initial: float, coefficient: float, exponent: int) -> float:
    try:
        return initial * coefficient**exponent
    except OverflowError:
        return math.inf


def _first(own: float | None, otherwise: float) -> float:
    return otherwise if own is None else own


def _in_time(decision: Decision, policy: RetryPolicy, elapsed_seconds: float) -> Decision:
    """``decision``, or death now where it would start past the deadline; a provider's rest is kept either way."""
    if elapsed_seconds + decision.delay_seconds <= policy.deadline_seconds:
        return decision
    return Decision(Action.DIE, reason=Reason.DEADLINE_EXCEEDED, cool_seconds=decision.cool_seconds)
