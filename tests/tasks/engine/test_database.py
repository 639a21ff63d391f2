"""The worker's own connection: what it plans once still fits when the tables have grown."""

from __future__ import annotations

import asyncio

import pytest
from django.db import connection

from tasks import lifecycle
from tasks.engine.database import DatabaseThread
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)


def kept_plans() -> list[str]:
    """The plans that a session keeps of a claim made while the tables were small, one text each."""
    worker = world.worker()
    with connection.cursor() as cursor:
        cursor.execute("SET plan_cache_mode = force_generic_plan")
        lifecycle.claim_batch(worker, 5, [], count_first=True)
        cursor.execute("SELECT name, cardinality(parameter_types) FROM pg_prepared_statements ORDER BY prepare_time")
        plans = []
        for name, count in cursor.fetchall():
            values = f"({', '.join(['NULL'] * count)})" if count else ""
            cursor.execute(f'EXPLAIN EXECUTE "{name}"{values}')
            plans.append("\n".join(line for (line,) in cursor.fetchall()))
    return plans


def in_thread() -> list[str]:
    async def ask() -> list[str]:
        thread = DatabaseThread("test")
        try:
            return await thread.run(kept_plans)
        finally:
            await thread.close()

    return asyncio.run(ask())


@pytest.fixture
def few() -> None:
    """So few tasks that reading all of them is cheapest, and PostgreSQL knows it."""
    kind = world.prompt_kind()
    lifecycle.submit_many(kind.name, [{"text": "a"}] * 30)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tasks_task")


def test_a_plan_of_few_tasks_reads_no_table_of_them_whole(few: None) -> None:
    limits, claim = in_thread()
    assert "tasks_lane" in limits
    assert "Insert on tasks_attempt" in claim
    for whole in ("Seq Scan on tasks_task", "Hash Join", "Merge Join"):
        assert whole not in limits + claim


def test_other_connections_of_the_process_plan_as_they_always_do(few: None) -> None:
    in_thread()
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SHOW enable_seqscan")
        assert cursor.fetchone() == ("on",)
