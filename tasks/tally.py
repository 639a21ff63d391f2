"""The maintained counts: read them, and fold what was appended to them."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection, transaction

#: Upper bounds of the buckets of attempt durations, seconds. The triggers have them too; a test compares.
BUCKETS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
#: Rows folded in one transaction.
BATCH = 10_000
#: Any number of our own: the lock's name among the database's advisory locks.
LOCK = 0x7464_7461

READ = """
SELECT metric, kind, label, sum(value) FROM (
    SELECT metric, kind, label, value FROM tasks_tally WHERE metric = ANY(%(metrics)s)
    UNION ALL
    SELECT metric, kind, label, value FROM tasks_tallydelta WHERE metric = ANY(%(metrics)s)
) AS parts GROUP BY metric, kind, label ORDER BY metric, kind, label
"""

FOLD = """
WITH gone AS (
    DELETE FROM tasks_tallydelta WHERE id IN (SELECT id FROM tasks_tallydelta ORDER BY id LIMIT %(most)s)
    RETURNING metric, kind, label, value
), folded AS (
    INSERT INTO tasks_tally AS t (metric, kind, label, value)
    SELECT metric, kind, label, sum(value) FROM gone GROUP BY metric, kind, label
    ON CONFLICT (metric, kind, label) DO UPDATE SET value = t.value + excluded.value
)
SELECT count(*) FROM gone
"""


def read(metrics: Iterable[str]) -> list[tuple[str, str, str, float]]:
    """(metric, kind, label, value) of each count of these metrics; one query, one moment."""
    with connection.cursor() as cursor:
        cursor.execute(READ, {"metrics": list(metrics)})
        return list(cursor.fetchall())


def fold() -> int:
    """Fold at most ``BATCH`` appended rows; how many. 0 as well while another process folds."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute(FOLD, {"most": BATCH})
        (count,) = cursor.fetchone()
    return int(count)
