"""Pause a kind; hold, cool and release a provider. Their tasks stay ready and say why they wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from tasks.errors.hints import LONGEST_SECONDS
from tasks.lifecycle.announce import announce_ready
from tasks.models import Kind, Provider

#: A rest ends within a day, whoever asked for it: a date that no reader can show would take the console with it. One
#: that was written beyond that is shortened, too.
COOL = """
WITH wanted AS (
    SELECT now() + LEAST(%(seconds)s::float8, %(longest)s::float8) * interval '1 second' AS until,
           now() + %(longest)s::float8 * interval '1 second' AS latest)
UPDATE tasks_provider SET cooling_until = wanted.until, cooling_reason = %(reason)s
FROM wanted
WHERE name = %(name)s
  AND (cooling_until IS NULL OR cooling_until < wanted.until OR cooling_until > wanted.latest)
"""


@dataclass(frozen=True, slots=True)
class Hold:
    """Why the system stops a provider."""

    code: str
    reason: str


def pause_kind(name: str, *, by: str, reason: str) -> bool:
    """Stop claiming tasks of a kind; calls under way go on. False when it was paused already, or is unknown."""
    changed = Kind.objects.filter(pk=name, paused_at__isnull=True).update(
        paused_at=Now(), paused_by=by, pause_reason=reason
    )
    return bool(changed)


def resume_kind(name: str, *, by: str) -> bool:
    """Claim tasks of a kind again. False when it was not paused. ``by`` is for the caller's audit row."""
    with transaction.atomic():
        changed = Kind.objects.filter(pk=name, paused_at__isnull=False).update(
            paused_at=None, paused_by="", pause_reason=""
        )
        if changed:
            announce_ready()
    return bool(changed)


def hold_provider(name: str, *, by: str, reason: str, code: str = "") -> bool:
    """Send nothing to a provider until it is released. False when it is held already, or is unknown."""
    changed = Provider.objects.filter(pk=name, held_at__isnull=True).update(
        held_at=Now(), held_by=by, hold_reason=reason, hold_code=code
    )
    return bool(changed)


def release_provider(name: str, *, by: str) -> bool:
    """End a provider's hold and cooling. False when there was neither. ``by`` is for the caller's audit row."""
    with transaction.atomic():
        stopped = Q(held_at__isnull=False) | Q(cooling_until__gt=Now())
        changed = Provider.objects.filter(stopped, pk=name).update(
            held_at=None, held_by="", hold_reason="", hold_code="", cooling_until=None, cooling_reason=""
        )
        if changed:
            announce_ready()
    return bool(changed)


def cool_providers(cooling: Mapping[str, tuple[float, str]]) -> None:
    """Rest each provider for so many seconds, at most a day, with the reason; never shorter than it rests already."""
    rows = sorted((name, seconds, reason) for name, (seconds, reason) in cooling.items() if math.isfinite(seconds))
    with connection.cursor() as cursor:
        for name, seconds, reason in rows:  # one row per provider that has just named a time: a handful
            cursor.execute(
                COOL,
                {"name": name, "seconds": seconds, "longest": LONGEST_SECONDS, "reason": reason},
            )


def hold_for_failures(holds: Mapping[str, Hold]) -> set[str]:
    """Hold each provider for the system; the names for which this began the hold (the others were held already)."""
    return {
        name
        for name, hold in sorted(holds.items())
        if hold_provider(name, by="redrive", reason=hold.reason, code=hold.code)
    }
