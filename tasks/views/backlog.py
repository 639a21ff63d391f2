"""How many tasks wait and run, per kind and per provider: counted to a cap, never over the whole table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from django.db import connection

#: Rows counted at most: per lane for what is ready, over all lanes for the rest.
CAP = 10_000

# Walks each lane's stretch of the claim's own index, and stops there at the cap.
READY = """
SELECT l.kind_id, l.provider_id, counted.n
FROM tasks_lane l CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT 1 FROM tasks_task t
        WHERE t.lane_id = l.id AND t.status = 'ready' AND t.parked_at IS NULL
        LIMIT %s
    ) AS bounded
) AS counted
WHERE counted.n > 0
"""
# Both are partial indexes of rows under way: they stay small, or the cap bounds them.
UNDER_WAY = """
SELECT kind_id, lane_id, status, count(*) FROM (
    (SELECT kind_id, lane_id, status FROM tasks_task WHERE status = 'running' LIMIT %s)
    UNION ALL
    (SELECT kind_id, lane_id, status FROM tasks_task WHERE status IN ('scheduled', 'retryable') LIMIT %s)
) AS bounded
GROUP BY 1, 2, 3
"""


@dataclass(frozen=True)
class Backlog:
    """Counts by kind name and by provider name; one above ``CAP`` means “more than that”."""

    ready: Counter[str] = field(default_factory=Counter)
    running: Counter[str] = field(default_factory=Counter)
    later: Counter[str] = field(default_factory=Counter)
    provider_ready: Counter[str] = field(default_factory=Counter)
    provider_running: Counter[str] = field(default_factory=Counter)


def backlog() -> Backlog:
    """The counts as they are now, in three queries."""
    counts = Backlog()
    with connection.cursor() as cursor:
        cursor.execute(READY, [CAP + 1])
        for kind, provider, n in cursor.fetchall():
            counts.ready[kind] += n
            counts.provider_ready[provider or ""] += n
        cursor.execute("SELECT id, provider_id FROM tasks_lane")
        lanes = dict(cursor.fetchall())
        cursor.execute(UNDER_WAY, [CAP + 1, CAP + 1])
        for kind, lane, status, n in cursor.fetchall():
            if status == "running":
                counts.running[kind] += n
                counts.provider_running[lanes.get(lane) or ""] += n
            else:
                counts.later[kind] += n
    return counts
