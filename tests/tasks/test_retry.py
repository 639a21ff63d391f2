"""The table of issue and design: what each failure leads to, and when."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tasks.errors import CODES
from tasks.retry import Action, Decision, RetryPolicy, backoff_seconds, decide, snooze_decision
from tasks.states import Reason

PLAIN = RetryPolicy(jitter=0)


def decided(code: str, failures: int = 1, **given: Any) -> Decision:
    weighed = {"snoozes_in_a_row": 1, "elapsed_seconds": 0.0, "hint_seconds": None, "random": 0.0, "policy": PLAIN}
    return decide(spec=CODES[code], counted_failures=failures, **{**weighed, **given})


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 30), (7, 30), (8, 30), (55, 30), (64, 30), (10**9, 30)],
)
def test_backoff_doubles_to_its_maximum(attempt: int, seconds: float) -> None:
    assert backoff_seconds(PLAIN, attempt, random=0.7) == seconds


@pytest.mark.parametrize(("random", "seconds"), [(0.0, 4.0), (0.5, 3.0), (0.999, 2.002)])
def test_jitter_takes_off_up_to_its_part(random: float, seconds: float) -> None:
    assert backoff_seconds(RetryPolicy(jitter=0.5), 3, random) == pytest.approx(seconds)


def test_backoff_never_overflows_and_keeps_the_minimum_gap() -> None:
    steep = RetryPolicy(initial_interval_seconds=1e300, backoff_coefficient=1e300, jitter=0)
    assert backoff_seconds(steep, 60, 0) == 30.0
    assert backoff_seconds(RetryPolicy(initial_interval_seconds=0, jitter=1), 1, 0.9) == 0.1


RETRIED = [
    "AI_UPSTREAM_5XX",
    "AI_OVERLOADED",
    "AI_CONNECTION_FAILED",
    "AI_MODEL_TIMEOUT",
    "AI_OUTPUT_EMPTY",
    "AI_OUTPUT_MALFORMED",
    "AI_UNKNOWN_ERROR",
]


@pytest.mark.parametrize("code", RETRIED)
def test_retried_after_one_then_two_seconds_then_dead(code: str) -> None:
    assert decided(code, 1) == Decision(Action.RETRY, 1.0)
    assert decided(code, 2) == Decision(Action.RETRY, 2.0)
    assert decided(code, 3) == Decision(Action.DIE, reason=Reason.ATTEMPTS_EXHAUSTED)


DEAD_AT_ONCE = [
    "AI_AUTH_FAILED",
    "AI_QUOTA_EXHAUSTED",
    "AI_PERMISSION_DENIED",
    "AI_MODEL_NOT_FOUND",
    "AI_CONTEXT_TRUNCATED",
    "AI_INPUT_TOO_LARGE",
    "AI_INPUT_INVALID",
    "AI_CONTENT_FILTERED",
    "AI_OUTPUT_TRUNCATED",
    "AI_CONFIG_INVALID",
    "AI_TLS_FAILED",
    "AI_SESSION_CORRUPT",
]


@pytest.mark.parametrize("code", DEAD_AT_ONCE)
@pytest.mark.parametrize("hint", [None, 2.0])
def test_dead_at_once_whatever_the_hint(code: str, hint: float | None) -> None:
    assert decided(code, hint_seconds=hint) == Decision(Action.DIE, reason=Reason.NOT_RETRYABLE)


@pytest.mark.parametrize(
    ("hint", "snoozes", "wait", "cool"),
    [
        (2.0, 1, 2.0, 2.0),
        (0.05, 1, 0.1, 0.1),
        (0.0, 2, 0.1, 0.1),
        (3_600.0, 1, 3_600.0, 3_600.0),
        # Whatever read the hint: no time is none, and a day is the longest rest.
        (math.nan, 1, 1.0, None),
        (math.inf, 1, 1.0, None),
        (-math.inf, 1, 1.0, None),
        (-1.0, 1, 1.0, None),
        (1e300, 1, 86_400.0, 86_400.0),
        # A provider that names no time to speak of again and again is not hammered.
        (0.0, 3, 4.0, 0.1),
        (None, 1, 1.0, None),
        (None, 2, 2.0, None),
        (None, 6, 30.0, None),
        (None, 500, 30.0, None),
    ],
)
def test_a_rate_limit_snoozes_without_budget(hint: float | None, snoozes: int, wait: float, cool: float | None) -> None:
    decision = decided("AI_RATE_LIMITED", 3, hint_seconds=hint, snoozes_in_a_row=snoozes)
    assert decision == Decision(Action.SNOOZE, wait, cool_seconds=cool)


@pytest.mark.parametrize(
    ("hint", "seconds"), [(5.0, 5.0), (0.5, 1.0), (None, 1.0), (1e300, 86_400.0), (math.nan, 1.0), (-9.0, 1.0)]
)
def test_an_overloaded_provider_is_given_the_longer_of_hint_and_backoff(hint: float | None, seconds: float) -> None:
    assert decided("AI_OVERLOADED", hint_seconds=hint) == Decision(Action.RETRY, seconds)


@pytest.mark.parametrize(
    ("code", "elapsed", "hint", "dies"),
    [
        ("AI_UPSTREAM_5XX", 98.9, None, False),
        ("AI_UPSTREAM_5XX", 99.1, None, True),
        ("AI_OVERLOADED", 50.0, 51.0, True),
        ("AI_RATE_LIMITED", 50.0, 50.0, False),
        ("AI_RATE_LIMITED", 50.0, 51.0, True),
        ("AI_RATE_LIMITED", 99.5, None, True),
    ],
)
def test_what_would_start_past_the_deadline_dies_now(code: str, elapsed: float, hint: float | None, dies: bool) -> None:
    decision = decided(
        code, policy=RetryPolicy(jitter=0, deadline_seconds=100), elapsed_seconds=elapsed, hint_seconds=hint
    )
    assert (decision.reason == Reason.DEADLINE_EXCEEDED) is dies
    assert (decision.action == Action.DIE) is dies


def test_a_delay_is_a_year_at_most_whatever_is_configured() -> None:
    endless = RetryPolicy(
        jitter=0, initial_interval_seconds=1e300, maximum_interval_seconds=1e300, deadline_seconds=1e300
    )
    assert decided("AI_UPSTREAM_5XX", policy=endless) == Decision(Action.RETRY, 366 * 86_400.0)
    assert decided("AI_RATE_LIMITED", policy=endless) == Decision(Action.SNOOZE, 366 * 86_400.0)


def test_a_malformed_answer_is_not_asked_for_again_after_its_repairs() -> None:
    assert decided("AI_OUTPUT_MALFORMED", repaired=True) == Decision(Action.DIE, reason=Reason.NOT_RETRYABLE)
    assert decided("AI_UPSTREAM_5XX", repaired=True).action == Action.RETRY


@pytest.mark.parametrize(("kinds", "codes", "allowed"), [(3, 2, 2), (2, 5, 2), (3, None, 3)])
def test_the_smaller_budget_holds(kinds: int, codes: int | None, allowed: int) -> None:
    from dataclasses import replace

    spec = replace(CODES["AI_UPSTREAM_5XX"], max_attempts=codes)
    policy = RetryPolicy(max_attempts=kinds, jitter=0)
    given: dict[str, Any] = {"snoozes_in_a_row": 0, "elapsed_seconds": 0.0, "hint_seconds": None, "random": 0.0}
    actions = [
        decide(policy=policy, spec=spec, counted_failures=number, **given).action for number in range(1, allowed + 1)
    ]
    assert actions == [Action.RETRY] * (allowed - 1) + [Action.DIE]


def test_a_codes_own_backoff_holds_over_the_kinds() -> None:
    assert decided("AI_MODEL_LOADING", 2).delay_seconds == 10.0


def test_a_failure_that_meets_a_hold_is_snoozed() -> None:
    decision = snooze_decision(
        policy=PLAIN, snoozes_in_a_row=3, elapsed_seconds=0, random=0, spec=CODES["AI_AUTH_FAILED"]
    )
    assert decision == Decision(Action.SNOOZE, 4.0)
