"""The statements of the hot path, planned once a connection: planning the claim takes longer than making it.

Django binds parameters in the client, which no statement can be prepared with; these go past it, to the same connection
and in the same transaction. Behind PgBouncer nothing is prepared (``prepare_threshold`` is None there).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import psycopg
from django.db import NotSupportedError, connection


class PreparedCursor(psycopg.Cursor[tuple[Any, ...]]):
    """Prepares what it executes. Django's log of queries has such a one without its text, which it does not keep."""

    def execute(self, query: Any, params: Any = None, **_: Any) -> Self:
        """As psycopg has it."""
        return super().execute(query, params, prepare=True)


def rows(statement: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """What the statement returns. Raises what Django raises. For the thread that has opened the connection.

    ``params``: each statement is prepared once for each combination of their types: send numbers of any size as text,
    with a cast in the statement.
    """
    connection.ensure_connection()
    # As Django makes its own: what watches queries (its log, its wrappers) sees these, too.
    make: Any = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    try:
        with make(PreparedCursor(connection.connection)) as cursor:
            cursor.execute(statement, params)
            return list(cursor.fetchall())
    except NotSupportedError:
        # A migration has changed the type of a column: to this session, the statement is of no more use.
        connection.close()
        raise
