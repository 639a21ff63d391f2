"""Statements that a connection keeps: made once, and forgotten when they no longer fit."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.db import NotSupportedError, connection

from tasks import lifecycle
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)


def kept() -> int:
    """How many statements that claim are prepared in this session."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE strpos(statement, 'INSERT INTO tasks_attempt') > 0"
        )
        return int(cursor.fetchone()[0])


@pytest.fixture
def other_type(second_connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """What a migration may do meanwhile; undone at the end."""
    yield second_connection
    connection.close()
    second_connection.execute("ALTER TABLE tasks_task ALTER session_id TYPE varchar(200)")


@pytest.fixture(autouse=True)
def fresh() -> None:
    connection.close()


def test_a_claim_is_prepared_once() -> None:
    kind, worker = world.prompt_kind(), world.worker()
    lifecycle.submit_many(kind.name, [{"text": "a"}] * 8)
    for _ in range(4):
        assert len(lifecycle.claim(worker, 2, [])) == 2
    assert kept() == 1


def test_after_a_migration_of_its_columns_the_next_claim_is_planned_anew(other_type: psycopg.Connection) -> None:
    kind, worker = world.prompt_kind(), world.worker()
    lifecycle.submit_many(kind.name, [{"text": "a"}] * 3)
    assert len(lifecycle.claim(worker, 1, [])) == 1
    other_type.execute("ALTER TABLE tasks_task ALTER session_id TYPE text")
    with pytest.raises(NotSupportedError):
        lifecycle.claim(worker, 1, [])
    assert len(lifecycle.claim(worker, 2, [])) == 2


def test_where_nothing_may_be_prepared_nothing_is() -> None:
    """As behind PgBouncer."""
    connection.ensure_connection()
    connection.connection.prepare_threshold = None
    kind, worker = world.prompt_kind(), world.worker()
    lifecycle.submit_many(kind.name, [{"text": "a"}] * 2)
    assert len(lifecycle.claim(worker, 2, [])) == 2
    assert kept() == 0
    connection.close()
