"""When to come back, as the provider says it: Retry-After in all its forms. Pure; the clock can be given."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import re2

from tasks.errors.evidence import Evidence
from tasks.errors.failure import Failure

#: A hint below this, or one that has just passed, means "now": this much later.
SHORTEST_SECONDS = 0.1
#: No provider is believed for longer than this at a time; after it, it is asked again.
LONGEST_SECONDS = 86_400.0
#: Beyond this, either way, it is no time to come back but a mistake: a date in the year 9999, microseconds as seconds.
_ABSURD_SECONDS = 366 * 86_400.0
_EPOCH_MILLISECONDS, _EPOCH_SECONDS = 1e11, 1e8

_UNITS = r"milliseconds?|millis|msecs?|ms|minutes?|mins?|m|hours?|hrs?|h|days?|d|seconds?|secs?|s"
_PART = re2.compile(rf"(?i)(\d+(?:\.\d+)?)\s*({_UNITS})")
_NUMBER = re2.compile(r"^[+-]?\d+(?:\.\d+)?$")
_ONE = rf"\d+(?:\.\d+)?\s*(?:{_UNITS})"
_DURATION = rf"({_ONE}(?:[\s,]*(?:and\s+)?{_ONE})*)\b"
_TEXT = re2.compile(
    r"(?i)(?:(?:try|retry)(?:ing)?(?: your request)?(?: again)?|wait(?: for)?|available|resets?|reset)"
    r"(?: again)?(?: (?:in|after|for|at least|about))*:? " + _DURATION
)
_TEXT_CHINESE = re2.compile(r"(\d+(?:\.\d+)?) ?(毫秒|秒钟?|分钟|小时)(?:之?后|内)")
_CHINESE = {"毫": 0.001, "秒": 1.0, "分": 60.0, "小": 3600.0}
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_RETRY_DELAY = re2.compile(r"""(?i)retry_?delay["']?\s*[:=]\s*["']?(\d+(?:\.\d+)?)s""")
_LIMIT_RESET = re2.compile(r"(?:^|[;,\s])(?:reset|t)=(\d+)")
#: The header of a rate limit -> the header that tells whether that limit is the one reached.
_RESETS = tuple(
    (f"{vendor}{what}{end}", f"{vendor}{what}{end.replace('reset', 'remaining')}")
    for vendor, what, end in (
        ("x-ratelimit-", "", "reset-requests"),
        ("x-ratelimit-", "", "reset-tokens"),
        ("x-ratelimit-", "", "reset"),
        ("ratelimit-", "", "reset"),
        ("anthropic-ratelimit-", "requests", "-reset"),
        ("anthropic-ratelimit-", "tokens", "-reset"),
        ("anthropic-ratelimit-", "input-tokens", "-reset"),
        ("anthropic-ratelimit-", "output-tokens", "-reset"),
    )
)


def retry_after(failure: Failure, *, now: float | None = None) -> float | None:
    """Seconds to wait as the provider names them, or None where it names none. At least 0.1, at most a day.

    The precise header wins over the coarse one, a header over the body, the body over the text; the reset of a rate
    limit is asked last and only of a 429, as many providers send it with every answer. Dates count from the answer's
    own Date header where there is one, else from ``now`` (epoch seconds), so that a wrong clock does no harm. A
    negative number, a date long past and what lies more than a year ahead are no hint; the next one is read instead.
    """
    headers = _all_headers(failure)
    clock = _date(headers.get("date", "")) or (time.time() if now is None else now)
    found = next(_hints(failure, headers, clock), None)
    return None if found is None else min(max(SHORTEST_SECONDS, found), LONGEST_SECONDS)


def _hints(failure: Failure, headers: dict[str, str], clock: float) -> Iterator[float]:
    evidence = Evidence(failure)
    milliseconds = _number(headers.get("retry-after-ms") or headers.get("x-ms-retry-after-ms") or "")
    yield from _given(None if milliseconds is None else milliseconds / 1000)
    yield from _given(_moment(headers.get("retry-after", ""), clock))
    yield from _given(_delay_of(evidence))
    yield from _given(_spoken(evidence.text))
    if evidence.status == 429:
        yield from _given(_reset(headers, clock))


def _given(value: float | None) -> Iterator[float]:
    """``value`` if it is a hint at all; NaN compares as false."""
    if value is not None and -LONGEST_SECONDS <= value <= _ABSURD_SECONDS:
        yield value


def _all_headers(failure: Failure) -> dict[str, str]:
    """The answer's headers, and those a gateway quotes in its body (``error.metadata.headers``)."""
    headers = {name.lower(): value for name, value in failure.headers.items()}
    body: Any = failure.body
    for key in ("error", "metadata", "headers"):
        body = body.get(key) if isinstance(body, dict) else None
    if isinstance(body, dict):
        headers = {**{str(name).lower(): str(value) for name, value in body.items()}, **headers}
    return headers


def _moment(text: str, clock: float) -> float | None:
    """Seconds from ``clock`` of a number, a duration, an epoch in seconds or milliseconds, or a date."""
    text = text.strip()
    number = _number(text)
    if number is None:
        date = None if _NUMBER.search(text) else _date(text)
        return date - clock if date is not None else _duration(text)
    if number >= _EPOCH_MILLISECONDS:
        return number / 1000 - clock
    return number - clock if number >= _EPOCH_SECONDS else number


def _number(text: str) -> float | None:
    text = text.strip()
    value = float(text) if len(text) <= 30 and _NUMBER.search(text) else math.nan
    return value if value >= 0 else None


def _date(text: str) -> float | None:
    """Epoch seconds of an HTTP date or of an RFC 3339 time."""
    if len(text) > 64 or not any(mark in text for mark in ("GMT", "-", "+0", " ")):
        return None
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _duration(text: str) -> float | None:
    """``7m12s``, ``766ms``, ``1 day 2 hours`` as seconds; None for what is no duration."""
    if text.lstrip().startswith("-"):
        return None
    parts = [(float(match.group(1)), match.group(2).lower()) for match in _PART.finditer(text[:200])]
    if not parts:
        return None
    return sum(number * (0.001 if unit.startswith(("ms", "mil")) else _UNIT_SECONDS[unit[0]]) for number, unit in parts)


def _delay_of(evidence: Evidence) -> float | None:
    """Google's RetryInfo, Hugging Face's estimated_time, ``retry_after`` fields of a body or of JSON in the text."""
    for path, value in evidence.leaves:
        name = path.rpartition(".")[2].lower()
        if name in {"retrydelay", "retry_delay"}:
            return _duration(str(value)) or _number(str(value))
        if name in {"retry_after", "retryafter", "estimated_time", "retry_after_seconds"}:
            return _number(str(value))
        if name in {"retry_after_ms", "retryafterms"} and (number := _number(str(value))) is not None:
            return number / 1000
    found = _RETRY_DELAY.search(evidence.text)
    return float(found.group(1)) if found else None


def _spoken(text: str) -> float | None:
    """ "Please try again in 7m12s", "retry after 26 seconds", "请 5 秒后重试"."""
    found = _TEXT.search(text)
    if found:
        return _duration(found.group(1))
    chinese = _TEXT_CHINESE.search(text)
    return float(chinese.group(1)) * _CHINESE[chinese.group(2)[0]] if chinese else None


def _reset(headers: dict[str, str], clock: float) -> float | None:
    """The reset of the limits that are reached (the latest), else the earliest of all that are named."""
    named = [
        (wait, headers.get(remaining, "").strip() == "0")
        for reset, remaining in _RESETS
        if (wait := _moment(headers.get(reset, ""), clock)) is not None
    ]
    reached = [wait for wait, is_reached in named if is_reached]
    if reached or named:
        return max(reached) if reached else min(wait for wait, _ in named)
    combined = _LIMIT_RESET.search(headers.get("ratelimit", ""))
    return float(combined.group(1)) if combined else None
