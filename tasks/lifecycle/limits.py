"""The limits of kinds and providers: how much room there is, and what is spent of it. Held over all processes.

A claim locks the rows of the limits that tasks wait behind, counts what runs, and takes no more than there is room for;
it lets go with its commit. Rows that another holds at that moment are closed to this one. An attempt that takes a place
at a provider which its handler named (``places``) does the same with that provider's row.

Attempts that wait for such a place have room kept for them, or a backlog would claim each place that is freed; but each
place that one of them gets is followed by a claim's, or they would keep the backlog waiting for ever.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from tasks.lifecycle import prepared
from tasks.lifecycle.locks import leave_no_locks_behind
from tasks.models.limit import WINDOW, Limit

#: What an attempt is taken to spend where nothing is known yet, tokens.
UNKNOWN_TOKENS_EACH = 1_000.0
#: How much of each new attempt goes into the average.
NEWNESS = 0.1

# What is limited, and what is spent of it: the columns that ``limit_of`` reads. In braces what each reader adds.
LIMITS = """
WITH {waiting} limited AS MATERIALIZED (
    SELECT 'kind' AS scope, name, concurrency_limit AS concurrency, NULL::int AS requests, NULL::int AS tokens
    FROM tasks_kind WHERE concurrency_limit IS NOT NULL AND {kinds}
    UNION ALL
    SELECT 'provider', name, max_concurrency, requests_per_minute, tokens_per_minute FROM tasks_provider
    WHERE num_nonnulls(max_concurrency, requests_per_minute, tokens_per_minute) > 0 AND {providers}
)
SELECT limited.scope, limited.name, limited.concurrency, limited.requests, limited.tokens, own.id, own.second,
       own.requests, own.tokens, own.tokens_each, own.last_claimed,
       extract(epoch FROM clock_timestamp())::bigint
FROM limited LEFT JOIN LATERAL (
    SELECT * FROM tasks_limit l WHERE l.scope = limited.scope AND l.name = limited.name {lock}
) AS own ON true
"""

# The lanes from which something may be claimed.
OPEN_LANES = """
tasks_lane l JOIN tasks_kind k ON k.name = l.kind_id LEFT JOIN tasks_provider p ON p.name = l.provider_id
WHERE l.provider_id IS NOT DISTINCT FROM k.provider_id AND k.paused_at IS NULL
  AND p.held_at IS NULL AND (p.cooling_until IS NULL OR p.cooling_until <= now())
"""
# Only limits that tasks wait behind are locked, and not for as long as these are held back anyway: a claim that has
# nothing to take there is in nobody's way. The look into each lane ends with the first ready task.
WAITING = """waiting AS MATERIALIZED (
    SELECT l.kind_id, l.provider_id FROM (SELECT l.* FROM %(open_lanes)s) AS l CROSS JOIN LATERAL (
        SELECT FROM tasks_task t WHERE t.lane_id = l.id AND t.status = 'ready' AND t.parked_at IS NULL LIMIT 1) AS one
),""".replace("%(open_lanes)s", OPEN_LANES)
HELD = "FOR UPDATE SKIP LOCKED"
LOCK = LIMITS.format(
    waiting=WAITING,
    kinds="name IN (SELECT kind_id FROM waiting)",
    providers="name IN (SELECT provider_id FROM waiting)",
    lock=HELD,
)
LOCK_PROVIDER = LIMITS.format(waiting="", kinds="false", providers="name = %(provider)s", lock=HELD)

# Each running attempt counts for the provider of its lane, and for those where its handler has taken a place.
# Last how many wait for such a place (``LimitPlace``).
RUNNING = """
SELECT l.kind_id, l.provider_id, count(*), 0 FROM tasks_task t JOIN tasks_lane l ON l.id = t.lane_id
WHERE t.status = 'running' GROUP BY l.kind_id, l.provider_id
UNION ALL
SELECT NULL, p.provider, count(*) FILTER (WHERE p.waits_until IS NULL), count(*) FILTER (WHERE p.waits_until > now())
FROM tasks_limitplace p JOIN tasks_attempt a ON a.id = p.attempt_id WHERE a.outcome = 'running' GROUP BY p.provider
"""

ADD = """
INSERT INTO tasks_limit (scope, name, second, requests, tokens, tokens_each)
SELECT scope, name, 0, array_fill(0, ARRAY[%(window)s]), array_fill(0::bigint, ARRAY[%(window)s]), 0
FROM unnest(%(scopes)s::text[], %(names)s::text[]) AS missing(scope, name)
ORDER BY scope, name  -- two who add the same do it in the same order: each waits for what the other has added
ON CONFLICT DO NOTHING
RETURNING scope, name, id
"""

TAKE_CHARGES = """
DELETE FROM tasks_limitcharge WHERE provider = ANY(%s)
RETURNING provider, extract(epoch FROM at)::bigint, requests, tokens
"""

KEEP = """
UPDATE tasks_limit l SET second = n.second, requests = n.requests, tokens = n.tokens, tokens_each = n.tokens_each,
    last_claimed = n.last_claimed
FROM jsonb_to_recordset(%s::jsonb)
    AS n(id bigint, second bigint, requests int[], tokens bigint[], tokens_each float8, last_claimed bool)
WHERE l.id = n.id
"""


@dataclass(slots=True)
class Window:
    """What each of the last ``WINDOW`` seconds spent, the newest first."""

    second: int
    requests: list[int]
    tokens: list[int]
    tokens_each: float

    def turn_to(self, second: int) -> None:
        """Make ``second`` the newest.

        A clock that went back a little changes nothing. Set back by more than the window, it begins anew: until it had
        caught up nothing would leave the window, for an hour or a day.
        """
        if self.second - second > WINDOW:
            self.second, passed = second, WINDOW
        else:
            passed = min(max(0, second - self.second), WINDOW)
        self.requests = [0] * passed + self.requests[: WINDOW - passed]
        self.tokens = [0] * passed + self.tokens[: WINDOW - passed]
        self.second = max(self.second, second)

    def spend(self, second: int, requests: int, tokens: int) -> None:
        """Add what was spent at ``second``; what has left the window is forgotten."""
        place = max(0, self.second - second)
        if place < WINDOW:
            self.requests[place] += requests
            self.tokens[place] += tokens
        if tokens:
            known = self.tokens_each or float(tokens)
            self.tokens_each = known + NEWNESS * (tokens - known)


@dataclass(slots=True)
class Held:
    """A limit and what is spent of it; ``id`` None: it has no row yet. From ``rooms``: the transaction holds its row.

    ``last_claimed``: as ``Limit`` has it.
    """

    id: int | None
    scope: str
    name: str
    concurrency: int | None
    requests: int | None
    tokens: int | None
    window: Window
    last_claimed: bool

    def room(self, running: int) -> int:
        """How many more attempts may begin now, of which ``running`` are under way."""
        rooms = [limit - used for limit, used in self._used(running) if limit is not None]
        if self.tokens is not None:
            rooms.append(self._room_in_tokens(running))
        return max(0, min(rooms))

    def room_beside(self, waiters: int, running: int) -> int:
        """The same for a claim, beside so many attempts that wait for a place. After one of theirs, it is its turn."""
        room = self.room(running)
        return max(room - waiters, 0 if self.last_claimed else min(room, 1))

    def _used(self, running: int) -> list[tuple[int | None, int]]:
        return [(self.concurrency, running), (self.requests, sum(self.window.requests))]

    def _room_in_tokens(self, running: int) -> int:
        """What runs will have spent what it has not told yet. A limit below one attempt still lets one through."""
        spent, each = sum(self.window.tokens), self.window.tokens_each or UNKNOWN_TOKENS_EACH
        if not spent and not running:
            return max(1, int((self.tokens or 0) / each))
        return int(((self.tokens or 0) - spent - running * each) / each)


@dataclass(slots=True)
class Rooms:
    """What may begin: attempts by kind and by provider; who is not named is not limited.

    ``busy``: another holds one of the limits at this moment; it is worth looking again soon.
    """

    kinds: dict[str, int] = field(default_factory=dict)
    providers: dict[str, int] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    busy: bool = False

    def take(self, begun: Iterable[tuple[str, str | None]], *, claimed: bool = True) -> bool:
        """Count (kind, provider) of each attempt that begins there; whether some limit is used up by that.

        ``claimed``: by a claim; else one that runs has taken a place.
        """
        taken = Counter[tuple[str, str]]()
        for kind, provider in begun:
            taken["kind", kind] += 1
            taken["provider", provider or ""] += 1
        for limit in self.held:
            limit.window.spend(limit.window.second, taken[limit.scope, limit.name], 0)
            limit.last_claimed = claimed if taken[limit.scope, limit.name] else limit.last_claimed
        self._keep()
        return any(self._of(limit) <= taken[limit.scope, limit.name] for limit in self.held)

    def _of(self, limit: Held) -> int:
        return (self.kinds if limit.scope == Limit.Scope.KIND else self.providers)[limit.name]

    def _keep(self) -> None:
        rated = [limit for limit in self.held if limit.scope == Limit.Scope.PROVIDER]
        if rated:
            rows = [{"id": limit.id, "last_claimed": limit.last_claimed, **_columns(limit.window)} for limit in rated]
            with connection.cursor() as cursor:
                cursor.execute(KEEP, [json.dumps(rows)])


def _columns(window: Window) -> dict[str, Any]:
    return {name: getattr(window, name) for name in Window.__slots__}


def rooms(provider: str | None = None) -> Rooms:
    """Lock the limits that tasks wait behind, and count for a claim; with ``provider``, its own, for a place there.

    Must run in a transaction.
    """
    leave_no_locks_behind()
    rows = prepared.rows(LOCK) if provider is None else prepared.rows(LOCK_PROVIDER, {"provider": provider})
    if not rows:
        return Rooms()
    found = Rooms(held=[limit_of(row) for row in rows if row[5] is not None])
    _add([row for row in rows if row[5] is None], found)
    _take_charges(found.held)
    running, waiting = _running_and_waiting()
    for limit in found.held:
        by_name = found.kinds if limit.scope == Limit.Scope.KIND else found.providers
        name = limit.scope, limit.name
        by_name[limit.name] = limit.room_beside(waiting[name] if provider is None else 0, running[name])
    return found


def limit_of(row: Sequence[Any]) -> Held:
    """A limit from the columns that ``LOCK`` selects. One that nothing was claimed under yet has spent nothing."""
    scope, name, concurrency, per_minute, tokens_per_minute, key, second, spent, tokens, each, last_claimed, now = row
    nothing = [0] * WINDOW
    window = Window(second or now, list(spent or nothing), list(tokens or nothing), each or 0.0)
    window.turn_to(now)
    return Held(key, scope, name, concurrency, per_minute, tokens_per_minute, window, bool(last_claimed))


def _add(missing: Sequence[Sequence[Any]], found: Rooms) -> None:
    """Give a row to the limits that have none yet. Those whose row another claim holds are closed for this time."""
    if not missing:
        return
    scopes, names = [row[0] for row in missing], [row[1] for row in missing]
    with connection.cursor() as cursor:
        cursor.execute(ADD, {"scopes": scopes, "names": names, "window": WINDOW})
        added = {(scope, name): key for scope, name, key in cursor.fetchall()}
    for row in missing:
        if key := added.get((row[0], row[1])):
            found.held.append(limit_of((*row[:5], key, *row[6:])))
        else:
            (found.kinds if row[0] == Limit.Scope.KIND else found.providers)[row[1]] = 0
            found.busy = True


def _take_charges(held: Sequence[Held]) -> None:
    by_name = {limit.name: limit.window for limit in held if limit.scope == Limit.Scope.PROVIDER}
    if not by_name:
        return
    with connection.cursor() as cursor:
        cursor.execute(TAKE_CHARGES, [list(by_name)])
        for provider, second, requests, tokens in cursor.fetchall():
            by_name[provider].spend(second, requests, tokens)


def running_now() -> Counter[tuple[str, str]]:
    """How many tasks are under way, by scope and name of the limit that they would count for."""
    return _running_and_waiting()[0]


def _running_and_waiting() -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """And how many attempts wait for a place there."""
    running, waiting = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    with connection.cursor() as cursor:
        cursor.execute(RUNNING)
        for kind, provider, count, waits in cursor.fetchall():
            running["kind", kind or ""] += count
            running["provider", provider or ""] += count
            waiting["provider", provider or ""] += waits
    return running, waiting
