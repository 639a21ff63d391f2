"""What an attempt consumed, in the form in which its end is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from tasks.lifecycle import Usage
from tasks.lifecycle.clean import clean, clean_text
from tasks.llm.request import CallRecord
from tasks.models.ranges import LARGEST_COST

#: What the columns of a count of tokens hold.
LARGEST_COUNT = 2**31 - 1
NOTHING = Usage()


def usage_of(
    calls: Sequence[CallRecord], repairs: int, mended: Sequence[str], database_time: Callable[[float], float]
) -> Usage:
    """The sums over the calls, and the calls themselves as rows of the trail that can be stored.

    ``database_time``: of a moment of the monotonic clock, in epoch seconds.
    """
    if not (calls or repairs or mended):
        return NOTHING
    rows = [_call_row(call, database_time(call.started)) for call in calls]
    return Usage(
        repairs=repairs,
        mended=[clean_text(how) for how in mended],
        input_tokens=_sum([call["input_tokens"] for call in rows], LARGEST_COUNT),
        output_tokens=_sum([call["output_tokens"] for call in rows], LARGEST_COUNT),
        cost=_sum([call["cost"] for call in rows], LARGEST_COST),
        calls=rows,
    )


def _sum(values: list[Any], limit: Any) -> Any:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return min(sum(known[1:], known[0]), limit) if known else None


def _within(value: Any, limit: Any) -> Any:
    """A number as the provider tells it; one that no column holds is none."""
    return value if value is not None and value <= limit else None


def _call_row(call: CallRecord, started: float) -> dict[str, Any]:
    return {
        "seq": call.seq,
        "provider_name": call.provider,
        "model": clean_text(call.model)[:200],
        "messages": clean(call.messages),
        "answer": clean_text(call.answer),
        "finish_reason": clean_text(call.finish_reason or "")[:64],
        "tool_calls": clean(call.tool_calls),
        "input_tokens": _within(call.input_tokens, LARGEST_COUNT),
        "output_tokens": _within(call.output_tokens, LARGEST_COUNT),
        "cost": _within(call.cost, LARGEST_COST),
        "provider_request_id": clean_text(call.provider_request_id or "")[:200],
        "http_status": call.http_status,
        "error": clean_text(call.error or "")[:200],
        "mended": clean(call.mended),
        "started_at": datetime.fromtimestamp(started, UTC),
        "duration_ms": call.duration_ms,
    }
