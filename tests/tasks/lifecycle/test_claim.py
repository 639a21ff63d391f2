"""Claiming: in order, only open lanes, each task once, by the index."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone

from tasks import lifecycle
from tasks.engine import lease
from tasks.lifecycle.claim import CLAIM, parameters
from tasks.lifecycle.due import DUE, EXPIRED, STRAYS
from tasks.lifecycle.moves import LOCK
from tasks.lifecycle.rescue import ORPHANS
from tasks.models import Attempt, Kind, Provider
from tests.tasks.lifecycle import world


@pytest.mark.django_db
def test_a_claim_makes_an_attempt_bound_to_the_prompt_version() -> None:
    kind = world.prompt_kind()
    worker = world.worker()
    task = lifecycle.submit("ticket.triage", {"text": "hello"}, session_id="s")
    (row,) = lifecycle.claim(worker, 10, [])
    attempt = Attempt.objects.get(task=task)
    assert (row.task_id, row.attempt_id, row.payload_text) == (task.id, attempt.id, '{"text": "hello"}')
    assert (row.cycle, row.failures, row.session_id, row.provider) == (1, 0, "s", "p")
    assert (attempt.outcome, attempt.counted, attempt.worker_id) == ("running", False, worker)
    assert row.prompt_version_id == attempt.prompt_version_id == kind.prompt_version_id
    assert world.stored(task.id).status == "running"
    assert world.events(task.id) == [("submitted", "", "ready"), ("claimed", "ready", "running")]
    assert lifecycle.claim(worker, 10, []) == []


@pytest.mark.django_db
def test_priority_first_then_the_longest_due() -> None:
    world.prompt_kind()
    world.prompt_kind("reply.draft")
    low = lifecycle.submit("ticket.triage", "low", priority=-5)
    first = lifecycle.submit("reply.draft", "first")
    second = lifecycle.submit("ticket.triage", "second")
    high = lifecycle.submit("ticket.triage", "high", priority=100)
    world.age("tasks_task", "run_after", 60, f"id = '{first.id}'")
    rows = lifecycle.claim(world.worker(), 3, [])
    assert [row.task_id for row in rows] == [high.id, first.id, second.id]
    assert world.stored(low.id).status == "ready"


@pytest.mark.django_db
def test_only_open_lanes_are_visited() -> None:
    world.provider("held", held_at=timezone.now(), hold_reason="bad key")
    world.provider("cooling", cooling_until=timezone.now() + timedelta(minutes=1))
    world.provider("rested", cooling_until=timezone.now() - timedelta(seconds=1))
    world.prompt_kind("paused", paused_at=timezone.now())
    for name in ("held", "cooling", "rested"):
        world.prompt_kind(f"on.{name}", provider=Provider.objects.get(name=name))
    Kind.objects.create(name="unknown.handler", handler="elsewhere")
    world.handler_kind()
    for kind in Kind.objects.all():
        lifecycle.submit(kind.name, {})
    parked = lifecycle.submit("on.rested", "parked")
    world.age("tasks_task", "created_at", 0)
    type(parked).objects.filter(pk=parked.pk).update(parked_at=timezone.now())
    claimed = lifecycle.claim(world.worker(), 50, ["refund"])
    assert sorted(row.kind for row in claimed) == ["on.rested", "refund.execute"]


@pytest.mark.django_db
def test_a_kind_that_changes_its_provider_takes_its_waiting_tasks_along() -> None:
    kind = world.prompt_kind()
    lifecycle.submit("ticket.triage", {})
    kind.provider = world.provider("other")
    kind.save()
    assert lifecycle.claim(world.worker(), 1, []) == []
    assert lifecycle.realign() == 1
    (row,) = lifecycle.claim(world.worker(), 1, [])
    assert row.provider == "other"


@pytest.mark.django_db(transaction=True)
def test_a_task_committed_late_into_a_lane_that_was_left_is_moved_before_it_runs() -> None:
    """A caller's transaction reads the old provider, the kind is changed meanwhile, and then the caller commits."""
    kind = world.prompt_kind()
    old = kind.lane()
    kind.provider = world.provider("other")
    kind.save()
    task = lifecycle.submit("ticket.triage", {})
    type(task).objects.filter(pk=task.pk).update(lane=old)
    assert lifecycle.claim(world.worker(), 1, []) == []
    assert lifecycle.realign() == 1
    assert lifecycle.realign() == 0
    (row,) = lifecycle.claim(world.worker(), 1, [])
    assert row.provider == "other"


@pytest.mark.django_db
@pytest.mark.parametrize("column", ["lost_at", "stopped_at"])
def test_a_worker_that_is_marked_lost_or_stopped_gets_nothing(column: str) -> None:
    world.prompt_kind()
    worker = world.worker()
    task = lifecycle.submit("ticket.triage", {})
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE tasks_workerprocess SET {column} = now()")  # noqa: S608
    assert lifecycle.claim(worker, 5, []) == []
    assert world.stored(task.id).status == "ready"
    assert not Attempt.objects.exists()
    assert not lease.beat(worker, 0)


@pytest.mark.django_db(transaction=True)
def test_two_claims_at_once_share_the_tasks_and_none_waits(second_connection: psycopg.Connection) -> None:
    world.prompt_kind()
    worker = world.worker()
    tasks = lifecycle.submit_many("ticket.triage", [{"n": n} for n in range(10)])
    second_connection.execute("SET lock_timeout = '1s'")
    params = parameters(world.worker(), 6, [])
    with transaction.atomic():
        mine = lifecycle.claim(worker, 6, [])
        theirs = second_connection.execute(CLAIM, params).fetchall()
    claimed = [row.task_id for row in mine] + [row[0] for row in theirs]
    assert len(mine) == 6
    assert len(theirs) == 4
    assert set(claimed) == {task.id for task in tasks}


@pytest.mark.django_db(transaction=True)
def test_claims_at_once_find_enough_in_many_lanes(second_connection: psycopg.Connection) -> None:
    """A claim locks what it takes and no more, so that another at the same moment is not left with nothing."""
    for lane in range(8):
        world.prompt_kind(f"kind.{lane}")
        lifecycle.submit_many(f"kind.{lane}", [{"n": n} for n in range(10)])
    worker, other = world.worker(), world.worker()
    with transaction.atomic():
        mine = lifecycle.claim(worker, 10, [])
        theirs = second_connection.execute(CLAIM, parameters(other, 10, [])).fetchall()
        free = second_connection.execute(
            "SELECT count(*) FROM"
            " (SELECT id FROM tasks_task WHERE status = 'ready' FOR NO KEY UPDATE SKIP LOCKED) AS free"
        ).fetchone()
    assert len(mine) == len(theirs) == 10
    assert {row.task_id for row in mine}.isdisjoint({row[0] for row in theirs})
    assert free == (80 - 20,)


@pytest.mark.django_db
@pytest.mark.parametrize("statement", ["claim", "realign", "due", "expire", "rescue"])
def test_the_plan_does_not_read_the_whole_table(statement: str) -> None:
    """With many finished rows, and with lanes that their kind has left."""
    kinds = [world.prompt_kind(f"kind.{number}") for number in range(4)]
    other = world.provider("other")
    for kind in kinds:
        lifecycle.submit_many(kind.name, [{"n": n} for n in range(50)])
        kind.provider = other
        kind.save()
        lifecycle.submit_many(kind.name, [{"n": n} for n in range(50)])
    with connection.cursor() as cursor:
        cursor.execute(FINISHED)
        cursor.execute("ANALYZE tasks_task")
        cursor.execute("EXPLAIN " + STATEMENTS[statement], {**parameters(world.worker(), 50, []), "batch": 1_000})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan on tasks_task" not in plan, plan
    if statement == "claim":
        assert "task_ready" in plan
        assert "task_suspect" in plan


@pytest.mark.django_db
def test_without_statistics_each_task_that_is_taken_is_found_by_its_id() -> None:
    """A table that filled up a moment ago has none; a claim must not walk the whole queue for each task of it."""
    world.prompt_kind()
    lifecycle.submit_many("ticket.triage", [{"n": n} for n in range(2_000)])
    worker = world.worker()
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + CLAIM, parameters(worker, 300, []))
        ((plan,),) = cursor.fetchall()
    (usual,) = [node for node in _nodes(plan[0]["Plan"]) if node.get("Subplan Name") == "CTE usual"]
    walked = sum(node.get("Rows Removed by Join Filter", 0) for node in _nodes(usual))
    assert usual["Actual Rows"] == 300 and walked == 0


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for part in node.get("Plans", ()):
        yield from _nodes(part)


FINISHED = """
INSERT INTO tasks_task (id, kind_id, lane_id, payload, status, reason, error_code, subject, cycle, failures, snoozes,
    rescues, priority, session_id, user_id, trace_id, tags, idempotency_key, webhook_url, event_seq, input_tokens,
    output_tokens, cost, finished_at)
SELECT gen_random_uuid(), kind_id, lane_id, payload, 'succeeded', '', '', '', 1, 0, 0, 0, 0, '', '', '', '{}', '', '',
    1, 0, 0, 0, now()
FROM tasks_task CROSS JOIN generate_series(1, 100)
"""
STATEMENTS = {
    "claim": CLAIM,
    "realign": STRAYS,
    "due": DUE.replace("%s", "%(batch)s"),
    "expire": LOCK % (EXPIRED, "LIMIT 1000", "SKIP LOCKED"),
    "rescue": LOCK % (ORPHANS, "LIMIT 500", "SKIP LOCKED"),
}
