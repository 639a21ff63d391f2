"""What a failure means for its task: read it, decide, and put both into the end that is stored."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import asdict
from typing import Any

from tasks.engine.snapshot import Job
from tasks.errors import BUILT_IN, AnswerMalformed, Catalogue, Failure, Verdict, fingerprint, retry_after
from tasks.lifecycle import End, FailureRecord, Hold, Usage
from tasks.lifecycle.clean import clean, clean_text
from tasks.retry import Decision, decide, snooze_decision
from tasks.states import Outcome

logger = logging.getLogger(__name__)


async def judged(error: BaseException, job: Job, catalogue: Catalogue, usage: Usage, ran_seconds: float) -> End:
    """``failed``, in a thread: an error's text may be megabytes, and others wait for this loop.

    Seen through even where the attempt is stopped meanwhile: it has failed already, and the fence or the cancel mark
    decides what that is worth.
    """
    judging = asyncio.ensure_future(asyncio.to_thread(failed, error, job, catalogue, usage, ran_seconds))
    while not judging.done():
        try:
            await asyncio.wait([judging])
        except asyncio.CancelledError:
            continue
    return judging.result()


def failed(error: BaseException, job: Job, catalogue: Catalogue, usage: Usage, ran_seconds: float) -> End:
    """The end of an attempt that raised ``error`` after ``ran_seconds``."""
    failure = Failure.from_exception(error, provider=job.provider.name if job.provider else None)
    verdict = catalogue.classify(failure, job.kind.name)
    hint = retry_after(failure, now=job.database_time(time.monotonic()))
    decision = _decide(error, job, verdict, hint, ran_seconds)
    stored = record(failure, verdict)
    snoozed = decision.action == "snooze"
    provider = job.provider.name if job.provider else None
    return End(
        task_id=job.claimed.task_id,
        attempt_id=job.claimed.attempt_id,
        outcome=Outcome.SNOOZED if snoozed else Outcome.FAILED,
        failed=stored,
        action=decision.action,
        delay_seconds=decision.delay_seconds,
        reason=decision.reason,
        decision=_decision_data(decision, hint),
        provider=provider,
        cool_seconds=decision.cool_seconds,
        hold=_hold(verdict, stored) if provider else None,
        hold_snooze_seconds=_while_held(job),
        usage=usage,
    )


def record(failure: Failure, verdict: Verdict) -> FailureRecord:
    """The failure as it is stored: secrets masked, long parts cut, unstorable characters replaced."""
    mark = fingerprint(failure)
    stored = failure.masked()
    return FailureRecord(
        code=verdict.code,
        fingerprint=mark.digest,
        last_error=clean_text(stored.last_error),
        failure=clean({**stored.to_json(), "title": mark.title}),
    )


def recorded(error: BaseException, catalogue: Catalogue) -> FailureRecord:
    """The failure for the record. Where reading it fails, too, its class must do."""
    try:
        failure = Failure.from_exception(error)
        return record(failure, catalogue.classify(failure))
    except Exception:
        logger.exception("A failure could not be read.")
        failure = Failure(exception=type(error).__qualname__, message="The failure could not be read.")
        return record(failure, BUILT_IN.classify(failure))


def _while_held(job: Job) -> float:
    """How long the same answer snoozes its task while the hold stands. No deadline: being held back never kills."""
    return snooze_decision(
        policy=job.kind.policy, snoozes_in_a_row=job.claimed.snoozes + 1, elapsed_seconds=0.0, random=_jitter()
    ).delay_seconds


def _jitter() -> float:
    return random.random()  # noqa: S311 -- spreads retries in time, keeps no secret


def _decide(error: BaseException, job: Job, verdict: Verdict, hint: float | None, ran_seconds: float) -> Decision:
    claimed = job.claimed
    return decide(
        policy=job.kind.policy,
        spec=verdict.spec,
        counted_failures=claimed.failures + 1,
        snoozes_in_a_row=claimed.snoozes + 1,
        elapsed_seconds=claimed.elapsed_seconds + ran_seconds,
        hint_seconds=hint,
        random=_jitter(),
        repaired=isinstance(error, AnswerMalformed) and error.repairs > 0,
    )


def _hold(verdict: Verdict, stored: FailureRecord) -> Hold | None:
    if not verdict.spec.holds_provider:
        return None
    first_line = stored.failure["message"].strip().splitlines()[:1]
    return Hold(verdict.code, clean_text((first_line or [verdict.spec.title])[0])[:500] or verdict.code)


def _decision_data(decision: Decision, hint: float | None) -> dict[str, Any]:
    data = asdict(decision)
    if hint is not None:
        data["hint_seconds"] = hint
    return {key: str(value) if key == "reason" else value for key, value in data.items() if value is not None}
