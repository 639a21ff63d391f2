"""The places that running attempts have taken at limited providers which their handlers named (``ctx.llm``).

As with the provider of its kind, an attempt takes one place at its first call there and keeps it until it ends. What an
ended attempt had counts no more; its row is cleared away later. One that finds no room is noted as waiting, so that
claims leave it some; no longer than ``WAITS_SECONDS`` after its last look, as its process may have died.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection, transaction

from tasks.lifecycle.fullness import Full, full
from tasks.lifecycle.limits import rooms, running_now
from tasks.models.limit import Limit, LimitPlace

#: How long an attempt counts as waiting after it has looked. Where many wait in a process, they look in turns: not all
#: count then, but a few of each process do.
WAITS_SECONDS = 2.0
#: Of ended attempts, cleared away with each that is taken.
CLEARED = 100

TAKE = """
INSERT INTO tasks_limitplace (attempt_id, provider)
SELECT id, %s FROM tasks_attempt WHERE id = %s AND outcome = 'running'
ON CONFLICT (attempt_id, provider) DO UPDATE SET waits_until = NULL WHERE tasks_limitplace.waits_until IS NOT NULL
"""
WAIT = """
INSERT INTO tasks_limitplace (attempt_id, provider, waits_until)
SELECT id, %s, now() + %s * interval '1 second' FROM tasks_attempt WHERE id = %s AND outcome = 'running'
ON CONFLICT (attempt_id, provider) DO UPDATE SET waits_until = excluded.waits_until
"""
# MATERIALIZED keeps the LIMIT, as in the claim: a plan may run a subquery again for each row.
CLEAR = """
WITH ended AS MATERIALIZED (
    SELECT p.id FROM tasks_limitplace p
    WHERE NOT EXISTS (SELECT 1 FROM tasks_attempt a WHERE a.id = p.attempt_id AND a.outcome = 'running')
    LIMIT %s FOR UPDATE SKIP LOCKED
)
DELETE FROM tasks_limitplace WHERE id IN (SELECT id FROM ended)
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Whether it was taken; if not, what is used up there, or None where others hold the limit just now."""

    taken: bool
    full: Full | None = None


def take_place(attempt_id: int, provider: str) -> Place:
    """Take a place at this provider for an attempt, and count one request, once; its claim has not.

    At one without limits, and where there is none of that name, every place is free.
    """
    with transaction.atomic():
        found = rooms(provider)
        if found.busy:
            return Place(taken=False)
        if not found.held:
            return Place(taken=True)
        (limit,) = found.held
        with connection.cursor() as cursor:
            if not found.providers[provider] and not _has_place(attempt_id, provider):
                cursor.execute(WAIT, [provider, WAITS_SECONDS, attempt_id])
                # Nothing more is spent, but what ended attempts had spent was taken over just now.
                found.take(())
                return Place(taken=False, full=full(limit, running_now()[Limit.Scope.PROVIDER, provider]))
            cursor.execute(TAKE, [provider, attempt_id])
            found.take([("", provider)] if cursor.rowcount else (), claimed=False)
            if cursor.rowcount:
                clear_places(CLEARED)
    return Place(taken=True)


def _has_place(attempt_id: int, provider: str) -> bool:
    """It may have taken one and never heard of it."""
    return LimitPlace.objects.filter(attempt_id=attempt_id, provider=provider, waits_until=None).exists()


def clear_places(most: int = 10_000) -> int:
    """Delete places of attempts that have ended; how many."""
    with connection.cursor() as cursor:
        cursor.execute(CLEAR, [most])
        return int(cursor.rowcount)
