"""Reading database errors: each made by the real server, by what causes it, over the worker's kind of connection."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from tasks.engine.database import DatabaseThread
from tasks.engine.trouble import Trouble, sqlstate, trouble

pytestmark = pytest.mark.django_db(transaction=True)


def sql(statement: str, *values: Any) -> Callable[[], None]:
    def work() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, values or None)

    return work


def idle_in_a_transaction() -> None:
    """As a process that was frozen in the middle of one."""
    with transaction.atomic():
        sql("SET LOCAL idle_in_transaction_session_timeout = '20ms'")()
        time.sleep(0.3)
        sql("SELECT 1")()


def a_standby() -> None:
    """As after a failover: the server that was written to only reads now."""
    with transaction.atomic():
        sql("SET TRANSACTION READ ONLY")()
        sql("CREATE TABLE t (a int)")()


def a_bug_that_breaks_the_connection() -> None:
    sql("SELECT 1")()
    connection.connection.close()
    raise KeyError("task")


def a_lock_held_elsewhere() -> None:
    with transaction.atomic():
        sql("SET LOCAL lock_timeout = '20ms'")()
        sql("LOCK TABLE tasks_kind")()


def an_unknown_reference() -> None:
    with transaction.atomic():
        sql("INSERT INTO tasks_lane (kind_id) VALUES ('nowhere')")()
        sql("SET CONSTRAINTS ALL IMMEDIATE")()


def work_in_python(error: Exception) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


CASES: dict[str, tuple[Callable[[], Any], Trouble, str | None]] = {
    "the session was ended": (sql("SELECT pg_terminate_backend(pg_backend_pid())"), Trouble.AWAY, "57P01"),
    "it sat idle in a transaction": (idle_in_a_transaction, Trouble.AWAY, "25P03"),
    "a bug that broke it": (a_bug_that_breaks_the_connection, Trouble.AWAY, None),
    "the server only reads": (a_standby, Trouble.AWAY, "25006"),
    "a NUL in a text": (sql("SELECT %s::text", "a\x00b"), Trouble.VALUE, None),
    "a NUL in JSON": (sql("SELECT %s::jsonb", '"\\u0000"'), Trouble.VALUE, "22P05"),
    "a number out of range": (sql("SELECT 99999999999::int"), Trouble.VALUE, "22003"),
    "nested too deeply": (sql("SELECT %s::jsonb", "[" * 50_000 + "]" * 50_000), Trouble.VALUE, "54001"),
    "an unknown reference": (an_unknown_reference, Trouble.VALUE, "23503"),
    "too slow": (sql("SET statement_timeout = '20ms'; SELECT pg_sleep(5)"), Trouble.BUSY, "57014"),
    "locked": (a_lock_held_elsewhere, Trouble.BUSY, "55P03"),
    "a table that is not there": (sql("SELECT * FROM nowhere"), Trouble.OTHER, "42P01"),
    "no JSON": (lambda: json.dumps(object()), Trouble.VALUE, None),
    "too deep for Python": (work_in_python(RecursionError("too deep")), Trouble.VALUE, None),
    "a bug": (work_in_python(KeyError("task")), Trouble.OTHER, None),
}


@pytest.mark.parametrize(("work", "what", "state"), CASES.values(), ids=CASES.keys())
def test_what_an_error_tells(
    work: Callable[[], Any], what: Trouble, state: str | None, second_connection: psycopg.Connection
) -> None:
    with second_connection.transaction():
        second_connection.execute("LOCK TABLE tasks_kind IN ACCESS SHARE MODE")
        error = raised_by(work)
    assert (trouble(error), sqlstate(error)) == (what, state)


def raised_by(work: Callable[[], Any]) -> Exception:
    """What comes out of the thread; afterwards the same thread works again."""

    async def scenario() -> Exception:
        thread = DatabaseThread("test")
        try:
            await thread.run(work)
        except Exception as error:
            await thread.run(sql("SELECT 1"))
            return error
        finally:
            await thread.close()
        raise AssertionError("nothing was raised")

    return asyncio.run(scenario())


def test_a_server_that_is_not_there_is_away() -> None:
    with pytest.raises(psycopg.OperationalError) as raised:
        psycopg.connect("postgresql://nobody@127.0.0.1:1/none")
    try:
        raise OperationalError(str(raised.value)) from raised.value
    except DatabaseError as error:
        assert trouble(error) is Trouble.AWAY
