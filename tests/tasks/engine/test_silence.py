"""A database that says nothing is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from django.db import DatabaseError, connection

from tasks.engine.database import DatabaseThread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def awake(second_connection: psycopg.Connection) -> Iterator[None]:
    """The server notices that a client is gone when it has done thinking: those are ended."""
    yield
    second_connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(%'"
    )


def sleep(seconds: float) -> None:
    """Have the server think for so long."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s)", [seconds])


def test_what_waits_too_long_is_cut_off_and_the_next_call_connects_anew() -> None:
    async def ask() -> None:
        thread = DatabaseThread("silent", limit_seconds=0.2)
        try:
            async with asyncio.timeout(20):
                with pytest.raises(DatabaseError):
                    await thread.run(sleep, 60)
                await thread.run(sleep, 0)
        finally:
            await thread.close()

    asyncio.run(ask())


def test_what_is_slow_for_a_reason_gets_through_in_the_end() -> None:
    """The limit doubles at each cut."""

    async def ask() -> int:
        thread = DatabaseThread("slow", limit_seconds=0.2)
        cuts = 0
        try:
            async with asyncio.timeout(60):
                while True:
                    try:
                        await thread.run(sleep, 1.5)
                    except DatabaseError:
                        cuts += 1
                    else:
                        return cuts
        finally:
            await thread.close()

    assert asyncio.run(ask()) >= 1
