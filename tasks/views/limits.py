"""A list must answer soon or say so: a query of a page may take only so long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

#: Seconds a list's query may take.
PATIENCE = 3.0


class TooSlow(Exception):
    """The database stopped the query: the filter is too wide for what it searches."""


@contextmanager
def patience() -> Iterator[None]:
    """Run queries that the database stops after ``PATIENCE`` each. Raises TooSlow where it did."""
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{PATIENCE * 1000:.0f}ms"])
            yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooSlow from error
        raise
