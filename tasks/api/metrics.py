"""``/metrics`` for Prometheus. Every figure comes from the database, so any web process tells the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from tasks import tally
from tasks.access import VIEW
from tasks.api.auth import find_key
from tasks.api.problems import headers_of, problem
from tasks.metric_names import BY_NAME, COUNTERS, Family

LOOPBACK = frozenset({"127.0.0.1", "::1"})
METRICS = (
    *("tasks", "submitted", "ended", "attempts", "attempt_bucket", "attempt_seconds"),
    *("input_tokens", "output_tokens", "cost"),
)
#: The task that each lane would give next, and since when it could have been: one index look for each lane.
WAITING = """
SELECT l.kind_id, coalesce(l.provider_id, ''), extract(epoch FROM now() - next.run_after)
FROM tasks_lane l CROSS JOIN LATERAL (
    SELECT run_after FROM tasks_task t WHERE t.lane_id = l.id AND t.status = 'ready' AND t.parked_at IS NULL
    ORDER BY t.lane_id, t.priority DESC, t.run_after, t.id LIMIT 1
) AS next
"""
PROCESSES = """
SELECT role, count(*), sum(slots), sum(running) FROM tasks_workerprocess
WHERE lost_at IS NULL AND stopped_at IS NULL AND lease_until > now() GROUP BY role
"""
STOPPED = """
SELECT 'provider', name, held_at IS NOT NULL, coalesce(cooling_until > now(), false) FROM tasks_provider
UNION ALL SELECT 'kind', name, paused_at IS NOT NULL, false FROM tasks_kind
"""


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """For a key of any scope, a person who may see the console, or a scraper on this machine itself."""
    if not _may_read(request):
        return problem(401, "Send 'Authorization: Bearer KEY' with a key that was made by 'manage.py createapikey'.")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST, headers=headers_of(200))


def _may_read(request: HttpRequest) -> bool:
    """A proxy on this machine speaks for others, and says so by its header."""
    forwarded = "X-Forwarded-For" in request.headers or "Forwarded" in request.headers
    if request.META.get("REMOTE_ADDR") in LOOPBACK and not forwarded:
        return True
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return find_key(token) is not None
    return request.user.has_perm(VIEW)


class Collector:
    """Asks four bounded questions at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """The families."""
        rows: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
        for metric, kind, label, value in tally.read(METRICS):
            rows[metric].append((kind, label, value))
        yield _tasks(rows["tasks"])
        for metric, family in COUNTERS.items():
            yield _counted(family, rows[metric])
        yield _durations(rows["attempt_bucket"], rows["attempt_seconds"])
        yield _waiting()
        yield from _processes()
        yield _stopped()


def _tasks(rows: Iterable[tuple[str, str, float]]) -> Metric:
    family = _gauge("redrive_tasks")
    for kind, status, value in rows:
        family.add_metric([kind, status], value)
    return family


def _counted(family: Family, rows: Iterable[tuple[str, str, float]]) -> Metric:
    counter = CounterMetricFamily(family.name.removesuffix("_total"), str(family.words), labels=family.labels)
    for kind, label, value in rows:
        counter.add_metric([kind, *label.partition(" ")[::2]][: len(family.labels)], value)
    return counter


def _gauge(name: str) -> GaugeMetricFamily:
    family = BY_NAME[name]
    return GaugeMetricFamily(name, str(family.words), labels=family.labels)


def _durations(buckets: Iterable[tuple[str, str, float]], sums: Iterable[tuple[str, str, float]]) -> Metric:
    described = BY_NAME["redrive_attempt_seconds"]
    family = HistogramMetricFamily(described.name, str(described.words), labels=described.labels)
    by_kind: dict[str, dict[int, float]] = defaultdict(dict)
    for kind, label, value in buckets:
        by_kind[kind][int(label)] = value
    totals = {kind: value for kind, _, value in sums}
    for kind, counts in by_kind.items():
        family.add_metric([kind], _cumulated(counts), totals.get(kind, 0.0))
    return family


def _cumulated(counts: dict[int, float]) -> list[tuple[str, float]]:
    """Prometheus counts in each bucket what is below its bound, too."""
    bounds = [*(str(bound) for bound in tally.BUCKETS), "+Inf"]
    return [(bound, sum(counts.get(at, 0.0) for at in range(place + 1))) for place, bound in enumerate(bounds)]


def _waiting() -> Metric:
    family = _gauge("redrive_queue_age_seconds")
    for kind, provider, age in _rows(WAITING):
        family.add_metric([kind, provider], max(0.0, float(age)))
    return family


def _processes() -> Iterator[Metric]:
    processes, slots, busy = map(_gauge, ("redrive_processes", "redrive_slots", "redrive_slots_busy"))
    rows = list(_rows(PROCESSES))
    for role, count, _, _ in rows:
        processes.add_metric([role], count)
    slots.add_metric([], sum(row[2] or 0 for row in rows))
    busy.add_metric([], sum(row[3] or 0 for row in rows))
    yield from (processes, slots, busy)


def _stopped() -> Metric:
    family = _gauge("redrive_stopped")
    for what, name, stopped, cooling in _rows(STOPPED):
        family.add_metric([what, name, "paused" if what == "kind" else "held"], int(stopped))
        if what == "provider":
            family.add_metric([what, name, "cooling"], int(cooling))
    return family


def _rows(statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())
