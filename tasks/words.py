"""The words of the state machine for people, with the colour and icon each stands in; durations and times in words."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

#: value → (colour family, icon). One value means one thing wherever it stands: status, outcome or letter state.
TONES = {
    "scheduled": ("wait", "clock"),
    "ready": ("wait", "queue"),
    "running": ("run", "play"),
    "retryable": ("warn", "retry"),
    "waiting": ("wait", "pause"),
    "unknown": ("odd", "question"),
    "succeeded": ("ok", "tick"),
    "dead": ("bad", "cross"),
    "cancelled": ("wait", "stop"),
    "skipped": ("wait", "skip"),
    "failed": ("bad", "cross"),
    "snoozed": ("warn", "clock"),
    "interrupted": ("wait", "pause"),
    "lost": ("odd", "question"),
    "open": ("bad", "letters"),
    "reprocessed": ("run", "retry"),
    "recovered": ("ok", "tick"),
    "died_again": ("bad", "cross"),
    "discarded": ("wait", "stop"),
    "live": ("ok", "tick"),
    "stopped": ("wait", "stop"),
    "stale": ("warn", "question"),
    "no_worker": ("warn", "question"),
    "paused": ("warn", "pause"),
    "held": ("bad", "pause"),
    "cooling": ("warn", "clock"),
}

WORDS: dict[str, Promise] = {
    "scheduled": _("scheduled"),
    "ready": _("ready"),
    "running": _("running"),
    "retryable": _("retryable"),
    "waiting": _("waiting"),
    "unknown": _("unknown"),
    "succeeded": _("succeeded"),
    "dead": _("dead"),
    "cancelled": _("cancelled"),
    "skipped": _("skipped"),
    "failed": _("failed"),
    "snoozed": _("snoozed"),
    "interrupted": _("interrupted"),
    "lost": _("lost"),
    "open": _("open"),
    "reprocessed": _("reprocessed"),
    "recovered": _("recovered"),
    "died_again": _("died again"),
    "discarded": _("discarded"),
    "live": _("live"),
    "stopped": _("stopped"),
    "stale": _("late beat"),
    "no_worker": _("no worker"),
    "paused": _("paused"),
    "held": _("held"),
    "cooling": _("cooling"),
    "attempts_exhausted": _("attempts exhausted"),
    "not_retryable": _("not retryable"),
    "deadline_exceeded": _("deadline exceeded"),
    "expired": _("expired"),
    "outcome_unknown": _("outcome unknown"),
    "lease_expired": _("lease expired"),
    "vetoed": _("vetoed"),
    "unstorable": _("result unstorable"),
    "compensation_failed": _("compensation failed"),
}


def word(value: str) -> str:
    """The word people read for a stored value; a value without one is shown with its underscores as spaces."""
    return str(WORDS.get(value, value.replace("_", " ")))


def span(seconds: float | None) -> str:
    """A duration in its two largest useful parts: 0.4 s, 14 s, 3 min 5 s, 2 h 10 min, 4 d 3 h."""
    if seconds is None:
        return "–"
    seconds = max(0.0, float(seconds))
    if seconds < 9.95:
        return gettext("%(n)s s") % {"n": f"{seconds:.1f}"}
    rest = round(seconds)
    if rest < 60:
        return gettext("%(n)s s") % {"n": rest}
    days, rest = divmod(rest, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    if days:
        return _two(gettext("%(n)s d") % {"n": days}, hours, gettext("%(n)s h"))
    if hours:
        return _two(gettext("%(n)s h") % {"n": hours}, minutes, gettext("%(n)s min"))
    return _two(gettext("%(n)s min") % {"n": minutes}, rest if minutes < 10 else 0, gettext("%(n)s s"))


def _two(larger: str, smaller: int, unit: str) -> str:
    return f"{larger} {unit % {'n': smaller}}" if smaller else larger


def whole(when: datetime) -> str:
    """A point in time to the second, with the name of the operator's zone."""
    local = local_time(when)
    return f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"


def local_time(when: datetime) -> datetime:
    """A point in time in the operator's zone; in its own where the calendar ends between the two (31 December 9999)."""
    try:
        return timezone.localtime(when)
    except OverflowError:
        return when


def clock(when: datetime) -> str:
    """A point in time in the operator's zone: the time of day where it is today's, else with its date."""
    local = local_time(when)
    today = timezone.localtime(timezone.now()).date()
    return date_format(local, "H:i:s") if local.date() == today else date_format(local, "j M Y H:i")


def ago_text(when: datetime) -> str:
    """A point in time as its distance from now: “5 min ago”, “in 14 s”, “now”."""
    seconds = (timezone.now() - when).total_seconds()
    if abs(seconds) < 1:
        return gettext("now")
    shown = gettext("%(time)s ago") if seconds > 0 else gettext("in %(time)s")
    return shown % {"time": span(abs(seconds))}
