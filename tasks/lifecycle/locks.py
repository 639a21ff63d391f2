"""How long a transaction may keep what it has locked while it does nothing."""

from __future__ import annotations

from itertools import chain

from django.conf import settings
from django.db import connection


def leave_no_locks_behind(**more: str) -> None:
    """A process frozen in this transaction must not keep what it locked for longer than its lease keeps its tasks.

    ``more``: further settings of PostgreSQL for this transaction alone, set in the same statement.
    """
    lease = f"{settings.REDRIVE_LEASE_SECONDS * 1000:.0f}"
    wanted = {"idle_in_transaction_session_timeout": lease, **more}
    calls = ", ".join(["set_config(%s, %s, true)"] * len(wanted))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {calls}", [*chain.from_iterable(wanted.items())])
