"""ready → running: one claim fills all the free slots of a worker process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from tasks.lifecycle import limits, prepared, suspects
from tasks.lifecycle.claimed import ENDPOINT_COLUMNS, KIND_COLUMNS, Claimed, setup_of

# Lanes are walked one by one (LATERAL), each through its own stretch of the partial index, so the rows of paused kinds
# and held or cooling providers cost nothing. MATERIALIZED is what keeps the LIMIT: folded into the UPDATE, the planner
# may run the subquery once per row and take more than was asked for. A lane that its kind has left is not visited:
# ``realign`` moves what waits there. Tasks are first looked at without a lock, more than are wanted, so that claims at
# the same moment find enough left; then just those taken are locked, one after the other until there are enough.
# There the status is asked in a form that no partial index answers: where statistics are old, the planner takes
# ``task_ready`` for tiny and would walk all of it once for each task seen.
# A lane behind a limit has only the room that was counted for it, or none: a limit, or a task behind it, may be newer
# than the count. And nothing at all is taken where nobody has counted yet and tasks wait behind limits: they may be the
# more urgent ones.
# A suspect, under which two processes died, is taken by itself, by a process that runs none, once it ``MAY_RUN``.
# What a task runs by is read here and not by a second statement: an operator who changes address and prompt together
# would have the new address called with the old prompt.
CLAIM = """
WITH open_lane AS MATERIALIZED (
    SELECT l.id, l.kind_id, l.provider_id,
        CASE WHEN k.concurrency_limit IS NOT NULL
            THEN coalesce((%(kind_rooms)s::jsonb ->> l.kind_id)::int, 0) END AS kind_room,
        CASE WHEN num_nonnulls(p.max_concurrency, p.requests_per_minute, p.tokens_per_minute) > 0
            THEN coalesce((%(provider_rooms)s::jsonb ->> l.provider_id)::int, 0) END AS provider_room,
        CASE WHEN k.handler = '' THEN k.prompt_version_id END AS prompt_version_id
    FROM %(open_lanes)s
      AND (k.handler = '' OR k.handler = ANY(%(handlers)s))
), uncounted AS MATERIALIZED (
    SELECT FROM open_lane l CROSS JOIN LATERAL (
        SELECT FROM tasks_task t WHERE t.lane_id = l.id AND t.status = 'ready' AND t.parked_at IS NULL LIMIT 1) AS one
    WHERE NOT %(counted)s AND num_nonnulls(l.kind_room, l.provider_room) > 0
    LIMIT 1
), roomy AS MATERIALIZED (
    SELECT * FROM open_lane
    WHERE coalesce(least(kind_room, provider_room), 1) > 0 AND NOT EXISTS (SELECT FROM uncounted)
), first AS MATERIALIZED (
    SELECT next.*, roomy.kind_id, roomy.provider_id, roomy.prompt_version_id, kind_room, provider_room
    FROM roomy CROSS JOIN LATERAL (
        SELECT t.id, t.cycle, t.priority, t.run_after FROM tasks_task t
        WHERE t.lane_id = roomy.id AND t.status = 'ready' AND t.parked_at IS NULL AND t.rescues < 2
          AND (t.expires_at IS NULL OR t.expires_at > now())
        ORDER BY t.priority DESC, t.run_after, t.id
        LIMIT least(%(seen)s, kind_room, provider_room)
    ) AS next
), seen AS MATERIALIZED (
    SELECT * FROM (
        SELECT *, NULL::bigint AS place FROM first WHERE provider_room IS NULL
        UNION ALL
        SELECT *, row_number() OVER (PARTITION BY provider_id ORDER BY priority DESC, run_after, id)
        FROM first WHERE provider_room IS NOT NULL
    ) AS placed
    WHERE place IS NULL OR place <= provider_room
    ORDER BY priority DESC, run_after, id
    LIMIT %(seen)s
), usual AS MATERIALIZED (
    SELECT taken.*, seen.priority, seen.run_after, seen.kind_id, seen.provider_id, seen.prompt_version_id,
        seen.kind_room, seen.provider_room
    FROM seen CROSS JOIN LATERAL (
        SELECT t.id, t.cycle FROM tasks_task t
        WHERE t.id = seen.id AND t.status || '' = 'ready' AND t.parked_at IS NULL
        FOR NO KEY UPDATE OF t SKIP LOCKED
    ) AS taken
    LIMIT %(count)s
), just_lost AS MATERIALIZED (%(just_lost)s), waiting_suspect AS MATERIALIZED (
    SELECT s.id, s.priority, s.run_after, roomy.kind_id, roomy.provider_id, roomy.prompt_version_id, kind_room,
        provider_room
    FROM roomy CROSS JOIN LATERAL (
        -- OFFSET 0 keeps the order out: for that, the planner would walk all of the lane in ``task_ready``.
        SELECT * FROM tasks_task s
        WHERE s.lane_id = roomy.id AND s.status = 'ready' AND s.parked_at IS NULL AND s.rescues >= 2
          AND (s.expires_at IS NULL OR s.expires_at > now()) AND NOT EXISTS (
            SELECT 1 FROM tasks_task o WHERE o.worker_id = %(worker)s AND o.status = 'running' AND o.rescues >= 2)
        OFFSET 0
    ) AS s
    WHERE %(may_run)s
    ORDER BY s.priority DESC, s.run_after, s.id
), suspect AS MATERIALIZED (
    SELECT taken.*, next.priority, next.run_after, kind_id, provider_id, prompt_version_id, kind_room, provider_room
    FROM waiting_suspect AS next CROSS JOIN LATERAL (
        SELECT t.id, t.cycle FROM tasks_task t
        WHERE t.id = next.id AND t.status || '' = 'ready' AND t.parked_at IS NULL
        FOR NO KEY UPDATE OF t SKIP LOCKED
    ) AS taken
    LIMIT 1
), candidate AS MATERIALIZED (
    SELECT * FROM (
        SELECT *, row_number() OVER (PARTITION BY kind_id ORDER BY priority DESC, run_after, id) AS of_kind,
            row_number() OVER (PARTITION BY provider_id ORDER BY priority DESC, run_after, id) AS of_provider
        FROM (SELECT * FROM usual UNION ALL SELECT * FROM suspect) AS both_sorts
    ) AS placed
    WHERE of_kind <= coalesce(kind_room, of_kind) AND of_provider <= coalesce(provider_room, of_provider)
    ORDER BY priority DESC, run_after, id
    LIMIT %(count)s
), live AS MATERIALIZED (
    SELECT id FROM tasks_workerprocess WHERE id = %(worker)s AND lost_at IS NULL AND stopped_at IS NULL
), begun AS (
    INSERT INTO tasks_attempt (task_id, cycle, outcome, worker_id, prompt_version_id, provider_id, started_at,
                               error_code, fingerprint, last_error, repairs, mended)
    SELECT c.id, c.cycle, 'running', live.id, c.prompt_version_id, c.provider_id, now(), '', '', '', 0, '[]'
    FROM candidate c CROSS JOIN live
    RETURNING id, task_id, prompt_version_id, provider_id
), moved AS (
    UPDATE tasks_task t SET
        status = 'running', status_at = now(), worker_id = %(worker)s, attempt_id = begun.id,
        cycle_started_at = COALESCE(t.cycle_started_at, now()), event_seq = t.event_seq + 1, progress = NULL
    FROM begun WHERE t.id = begun.task_id AND t.status || '' = 'ready'
    RETURNING t.id, begun.id AS attempt_id, t.kind_id, t.cycle, t.payload, t.failures, t.snoozes,
              extract(epoch FROM now() - t.cycle_started_at)::float8 AS elapsed_seconds,
              begun.provider_id, begun.prompt_version_id, t.session_id, t.user_id, t.trace_id, t.tags, t.event_seq,
              t.priority, t.run_after
), noted AS (
    INSERT INTO tasks_taskevent (task_id, seq, at, type, from_status, to_status, cycle, attempt_id, actor, data)
    SELECT id, event_seq, now(), 'claimed', 'ready', 'running', cycle, attempt_id, '', '{}' FROM moved
)
SELECT id, attempt_id, kind_id, cycle, payload::text, failures, snoozes, elapsed_seconds, provider_id,
    prompt_version_id, session_id, user_id, trace_id, tags,
    -- once, not with each task
    CASE WHEN row_number() OVER () = 1 THEN (
        SELECT json_build_object('now', extract(epoch FROM now())::float8,
            'uncounted', EXISTS (SELECT FROM uncounted), 'kinds', json_object_agg(k.name,
            json_build_array(json_build_object(%(kind_columns)s),
                             CASE WHEN p.name IS NOT NULL THEN json_build_object(%(endpoint_columns)s) END)))
        FROM tasks_kind k LEFT JOIN tasks_provider p ON p.name = k.provider_id
        WHERE k.name IN (SELECT kind_id FROM moved))::text END
FROM (VALUES (1)) AS always LEFT JOIN moved ON true
WHERE moved.id IS NOT NULL OR EXISTS (SELECT FROM uncounted)
ORDER BY priority DESC, run_after, id
"""
CLAIM = (
    CLAIM.replace("%(open_lanes)s", limits.OPEN_LANES.strip())
    .replace("%(just_lost)s", suspects.JUST_LOST)
    .replace("%(may_run)s", suspects.MAY_RUN)
    .replace("%(kind_columns)s", KIND_COLUMNS)
    .replace("%(endpoint_columns)s", ENDPOINT_COLUMNS)
)


FIELDS, KIND = Claimed._fields.index("claimed_at"), Claimed._fields.index("kind")

#: How many more tasks a claim looks at than it takes: so many claims at once still find their share. Claims of very
#: many are few at once, and looking costs, too.
LOOK_AHEAD, LOOK_AHEAD_OF_MANY, MANY = 8, 3, 100


@dataclass(frozen=True, slots=True)
class Taken:
    """What one claim took. ``limited``: a limit keeps more back until something ends; ``busy``: look again soon.

    ``counted``: tasks waited behind limits, so the next claim had better count at once.
    """

    tasks: list[Claimed]
    limited: bool = False
    busy: bool = False
    counted: bool = False


def parameters(
    worker_id: int, count: int, handlers: Sequence[str], rooms: limits.Rooms | None = None
) -> dict[str, Any]:
    """What ``CLAIM`` is asked with. ``rooms``: None where the room behind limits was not counted."""
    return {
        "counted": rooms is not None,
        "kind_rooms": json.dumps(rooms.kinds if rooms else {}),
        "provider_rooms": json.dumps(rooms.providers if rooms else {}),
        "worker": worker_id,
        "count": count,
        "seen": count * (LOOK_AHEAD if count < MANY else LOOK_AHEAD_OF_MANY),
        "handlers": list(handlers),
        "quiet": suspects.quiet_seconds(),
        "patience": suspects.patience_seconds(),
    }


def claim(worker_id: int, count: int, handlers: Sequence[str]) -> list[Claimed]:
    """The tasks of ``claim_batch``."""
    return claim_batch(worker_id, count, handlers).tasks


def claim_batch(worker_id: int, count: int, handlers: Sequence[str], *, count_first: bool = False) -> Taken:
    """Claim up to ``count`` ready tasks for this worker process, highest priority first, then longest due.

    No more than the limits of kinds and providers leave room for. ``handlers``: the handler names that the process
    knows; prompt kinds need none. A worker that is marked lost or stopped gets nothing. ``count_first``: tasks probably
    wait behind limits, as the last claim told; that spares a statement and changes nothing else.
    """
    # A statement by itself: a process that is frozen here leaves no transaction open that keeps tasks from the others.
    tasks = None if count_first else _take(worker_id, count, handlers)
    return _claim_behind_limits(worker_id, count, handlers) if tasks is None else Taken(tasks)


def _claim_behind_limits(worker_id: int, count: int, handlers: Sequence[str]) -> Taken:
    with transaction.atomic():
        rooms = limits.rooms()
        if rooms.kinds or rooms.providers:
            tasks = _take(worker_id, count, handlers, rooms) or []
            limited = rooms.take((task.kind, task.provider) for task in tasks)
            return Taken(tasks, limited, rooms.busy, counted=True)
    # Nothing waits there, or no longer; again a statement by itself.
    return Taken(_take(worker_id, count, handlers, rooms) or [])


def _take(
    worker_id: int, count: int, handlers: Sequence[str], rooms: limits.Rooms | None = None
) -> list[Claimed] | None:
    """None: nothing was taken, since there are limits to count first."""
    rows = prepared.rows(CLAIM, parameters(worker_id, count, handlers, rooms))
    if not rows:
        return []
    told = json.loads(next(row[-1] for row in rows if row[-1]))
    if told["uncounted"]:
        return None
    setups = {kind: setup_of(*parts) for kind, parts in told["kinds"].items()}
    return [Claimed._make((*row[:FIELDS], told["now"], setups[row[KIND]])) for row in rows]
