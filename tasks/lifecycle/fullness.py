"""Which limits leave no room at this moment, for people to read. Locks nothing: each claim counts for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from django.db import connection

from tasks.lifecycle.limits import LIMITS, Held, limit_of, running_now
from tasks.models.limit import WINDOW, Limit

READ = LIMITS.format(waiting="", kinds="true", providers="true", lock="")

# What has ended since the last claim took its charges.
CHARGES = """
SELECT provider, extract(epoch FROM at)::bigint, sum(requests)::int, sum(tokens)::bigint FROM tasks_limitcharge
WHERE at > now() - %s * interval '1 second' GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Full:
    """A limit without room: ``used`` of ``limit`` running tasks, or requests or tokens of the last minute.

    Of tokens less than the limit may be used: what runs is expected to spend the rest.
    """

    what: Literal["running", "requests", "tokens"]
    used: int
    limit: int


@dataclass(frozen=True, slots=True)
class Fullness:
    """The limits without room, by the name of the kind or provider."""

    kinds: dict[str, Full]
    providers: dict[str, Full]


def fullness() -> Fullness:
    """The limits that keep tasks waiting now. At most three queries; what they read is bounded by limits and slots."""
    with connection.cursor() as cursor:
        cursor.execute(READ)
        limits = [limit_of(row) for row in cursor.fetchall()]
        if not limits:
            return Fullness({}, {})
        running = running_now()
        cursor.execute(CHARGES, [WINDOW])
        _spend({limit.name: limit for limit in limits if limit.scope == Limit.Scope.PROVIDER}, cursor.fetchall())
    found: dict[str, dict[str, Full]] = {"kind": {}, "provider": {}}
    for limit in limits:
        if used_up := full(limit, running[limit.scope, limit.name]):
            found[limit.scope][limit.name] = used_up
    return Fullness(found["kind"], found["provider"])


def _spend(providers: dict[str, Held], charges: Sequence[tuple[str, int, int, int]]) -> None:
    for provider, second, requests, tokens in charges:
        if provider in providers:
            providers[provider].window.spend(second, requests, tokens)


def full(limit: Held, running: int) -> Full | None:
    """What of it is used up where ``running`` attempts are under way; None where there is room."""
    if limit.room(running) > 0:
        return None
    if limit.concurrency is not None and running >= limit.concurrency:
        return Full("running", running, limit.concurrency)
    requests = sum(limit.window.requests)
    if limit.requests is not None and requests >= limit.requests:
        return Full("requests", requests, limit.requests)
    return Full("tokens", sum(limit.window.tokens), limit.tokens or 0)
