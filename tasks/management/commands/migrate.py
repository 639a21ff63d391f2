"""Django's ``migrate``, whose statements take the time that they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.conf import settings
from django.core.management.commands import migrate
from django.db import Error, connections


class Command(migrate.Command):
    """An index on a large table is built in minutes; the limit of our sessions is for pages and workers.

    How long a statement waits for a lock stays limited: whoever comes after it would wait as long.
    """

    def handle(self, *args: Any, **options: Any) -> None:
        """As Django has it."""
        with unlimited(options["database"]):
            super().handle(*args, **options)


@contextmanager
def unlimited(alias: str) -> Iterator[None]:
    """No ``statement_timeout`` in this session meanwhile. Behind PgBouncer the session is not ours, and has none."""
    if settings.REDRIVE_PGBOUNCER:
        yield
        return
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout'), set_config('statement_timeout', '0', false)")
        ((usual, _),) = cursor.fetchall()
    try:
        yield
    except BaseException:
        # What is to be told is this error; where it broke the session, there is nothing to set back.
        with suppress(Error):
            _limit(alias, usual)
        raise
    _limit(alias, usual)


def _limit(alias: str, usual: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [usual])
