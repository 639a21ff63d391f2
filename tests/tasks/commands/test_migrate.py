"""``manage.py migrate``: its statements have no limit of time, and the session has it again afterwards."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.models.signals import pre_migrate

pytestmark = pytest.mark.django_db(transaction=True)


def limit() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return str(cursor.fetchone()[0])


@pytest.fixture
def seen() -> Any:
    """The limit at each signal that a migration begins."""
    limits: list[str] = []

    def note(**_: Any) -> None:
        limits.append(limit())

    pre_migrate.connect(note)
    yield limits
    pre_migrate.disconnect(note)


def test_a_migration_takes_the_time_that_it_needs(seen: list[str]) -> None:
    before = limit()
    call_command("migrate", interactive=False, verbosity=0)
    assert set(seen) == {"0"}
    assert limit() == before != "0"


def test_the_limit_is_back_after_a_migration_that_fails(seen: list[str]) -> None:
    before = limit()
    with pytest.raises(Exception, match="no_such_migration"):
        call_command("migrate", "tasks", "no_such_migration", interactive=False, verbosity=0)
    assert limit() == before != "0"


def test_a_connection_that_breaks_is_told_as_what_broke_it(second_connection: psycopg.Connection) -> None:
    """Not as the limit that cannot be set back in a session that is gone."""

    def broken(**_: Any) -> None:
        second_connection.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])
        limit()

    pre_migrate.connect(broken)
    try:
        with pytest.raises(OperationalError, match="terminating connection due to administrator command"):
            call_command("migrate", interactive=False, verbosity=0)
    finally:
        pre_migrate.disconnect(broken)
        connection.close()


def test_behind_pgbouncer_the_session_is_left_alone(seen: list[str], settings: Any) -> None:
    settings.REDRIVE_PGBOUNCER = True
    before = limit()
    call_command("migrate", interactive=False, verbosity=0)
    assert set(seen) == {before}
