"""What a benchmark does inside a Django process of its own: ``python -m tests.benchmarks.inside WHAT ARGUMENT``.

Each prints one JSON value. The environment (database, settings) is its caller's.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from typing import Any

import django

#: Tasks of one bulk.
BULK = 1_000
#: Tasks that a measured claim takes, as a worker with the default slots does.
CLAIMED = 50
ROWS = """
INSERT INTO tasks_task (id, kind_id, lane_id, payload, status, reason, error_code, subject, cycle, failures, snoozes,
    rescues, priority, run_after, session_id, user_id, trace_id, tags, idempotency_key, webhook_url, event_seq,
    input_tokens, output_tokens, cost, finished_at)
SELECT gen_random_uuid(), k.name, l.id, '{"n": 1}', %(status)s, '', '', '', 1, 0, 0, 0, 0,
    now() + %(away)s * interval '1 second' + n * interval '1 millisecond', '', '', '', '{}', '', '', 1, 0, 0, 0,
    CASE WHEN %(status)s = 'succeeded' THEN now() END
FROM tasks_kind k JOIN tasks_lane l ON l.kind_id = k.name AND l.provider_id IS NOT DISTINCT FROM k.provider_id,
    generate_series(1, %(count)s) n
WHERE k.name = %(kind)s
"""


def fill(count: int) -> int:
    """So many empty tasks, in bulk."""
    from tasks.lifecycle import submit_many

    for start in range(0, count, BULK):
        submit_many("bench.empty", [None] * min(BULK, count - start))
    return count


def sleepers(argument: dict[str, Any]) -> int:
    """``count`` tasks that sleep ``seconds``."""
    from tasks.lifecycle import submit_many

    for start in range(0, argument["count"], BULK):
        submit_many("bench.sleep", [argument["seconds"]] * min(BULK, argument["count"] - start))
    return int(argument["count"])


def prompts(argument: dict[str, Any]) -> int:
    """``count`` tasks of a prompt kind."""
    from tasks.lifecycle import submit_many

    submit_many(argument["kind"], [{"text": f"ticket {number}"} for number in range(argument["count"])])
    return int(argument["count"])


def one_by_one(count: int) -> float:
    """Tasks per second, each with a transaction of its own."""
    from tasks import submit

    submit("bench.empty", None)
    began = time.perf_counter()
    for number in range(count):
        submit("bench.empty", {"n": number})
    return count / (time.perf_counter() - began)


def in_bulk(count: int) -> float:
    """Tasks per second, a thousand a call."""
    from tasks.lifecycle import submit_many

    submit_many("bench.empty", [None] * BULK)
    began = time.perf_counter()
    for start in range(0, count, BULK):
        submit_many("bench.empty", [{"n": start + number} for number in range(min(BULK, count - start))])
    return count / (time.perf_counter() - began)


def latencies(argument: dict[str, Any]) -> list[float]:
    """Seconds from before ``submit`` to the first line of the handler, one task at a time on idle workers."""
    from django.db import connection

    from tasks import submit

    moments = random.Random(7)
    found = []
    for _ in range(argument["count"]):
        time.sleep(moments.uniform(*argument["pause"]))  # idle, and at any point of a worker's rounds
        began = time.monotonic()
        task = submit("bench.when", None)
        while True:
            with connection.cursor() as cursor:
                cursor.execute("SELECT result::text::float8 FROM tasks_task WHERE id = %s", [task.pk])
                (started,) = cursor.fetchone()
            if started is not None:
                break
            time.sleep(0.02)  # asks seldom, so as not to load what is measured
        found.append(started - began)
    return found


def crowd(argument: dict[str, int]) -> int:
    """Rows that a claim must not feel: ``finished``, ``delayed``, and ``paused`` ones of another kind."""
    from django.db import connection, transaction

    wanted = [
        ("bench.empty", "succeeded", argument["finished"], 0),
        ("bench.empty", "scheduled", argument["delayed"], 86_400),
        ("bench.paused", "ready", argument["paused"], -3_600),
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        # Foreign keys and counts are not what is measured; they would take most of the hour.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for kind, status, count, away in wanted:
            cursor.execute(ROWS, {"kind": kind, "status": status, "count": count, "away": away})
        cursor.execute("UPDATE tasks_kind SET paused_at = now() WHERE name = 'bench.paused'")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE tasks_task")
    return sum(count for _, _, count, _ in wanted)


def claims(argument: dict[str, int]) -> dict[str, float]:
    """Median milliseconds of a claim of 50 ready tasks, of 1, and of one that finds nothing.

    On a connection as a worker has it, and committed, since a rollback would make it plan the next one anew.
    """
    import asyncio

    from tasks.engine.database import DatabaseThread

    async def measure() -> dict[str, float]:
        thread = DatabaseThread("bench", limit_seconds=3_600)
        try:
            return await thread.run(_claims, argument["rounds"])
        finally:
            await thread.close()

    return asyncio.run(measure())


def _claims(rounds: int) -> dict[str, float]:
    from tasks.lifecycle import End, claim, finish, submit_many
    from tasks.models import WorkerProcess
    from tasks.states import Outcome

    worker = WorkerProcess.objects.filter(role="worker").first() or _worker()
    found: dict[str, list[float]] = {"none": [], "1": [], "50": []}
    for _ in range(rounds):
        for name, wanted in (("none", CLAIMED), ("50", CLAIMED), ("1", 1)):
            if name != "none":
                submit_many("bench.empty", [None] * CLAIMED)
            began = time.perf_counter()
            got = claim(worker.pk, wanted, ["bench.empty"])
            found[name].append((time.perf_counter() - began) * 1000)
            if len(got) != (0 if name == "none" else wanted):
                raise RuntimeError(f"{len(got)} tasks were claimed, not {wanted}")
            rest = claim(worker.pk, CLAIMED, ["bench.empty"])
            ends = [
                End(task_id=task.task_id, attempt_id=task.attempt_id, outcome=Outcome.SUCCEEDED, result_text="null")
                for task in got + rest
            ]
            finish(worker.pk, ends)
    return {name: statistics.median(times) for name, times in found.items()}


def _worker() -> Any:
    from datetime import timedelta

    from django.utils import timezone

    from tasks.models import WorkerProcess

    lease = timezone.now() + timedelta(hours=10)
    return WorkerProcess.objects.create(role="worker", host="bench", pid=1, lease_until=lease)


WHAT = {work.__name__: work for work in (fill, sleepers, prompts, one_by_one, in_bulk, latencies, crowd, claims)}


if __name__ == "__main__":
    django.setup()
    sys.stdout.write(json.dumps(WHAT[sys.argv[1]](json.loads(sys.argv[2]))) + "\n")
