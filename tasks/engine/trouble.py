"""What a failed statement tells: is it the connection, its values, something that passes, or none of these. Pure."""

from __future__ import annotations

from enum import Enum, auto

from django.db import DataError, IntegrityError, InterfaceError, OperationalError

#: Classes of SQLSTATE that are about the connection or the server: connection, operator intervention, system error.
_AWAY_CLASSES = frozenset({"08", "57", "58"})
#: A transaction that sat idle for too long, a server that became a read-only standby, no room for one more connection.
_AWAY = frozenset({"25P03", "25006", "53300"})
#: In class 57, but about the statement: it took too long, or was cancelled.
_QUERY_CANCELED = "57014"
#: Deadlocks, a full disk or memory, locks.
_BUSY_CLASSES = frozenset({"40", "53", "55", "57"})
#: Classes that the same values meet again: cardinality, data, constraints, program limits (too long, too deep).
_VALUE_CLASSES = frozenset({"21", "22", "23", "54"})


class Trouble(Enum):
    """What to do about it."""

    #: Connect anew and try again as it was; nothing is known against the statement.
    AWAY = auto()
    #: Trying again gives the same: the values cannot be stored.
    VALUE = auto()
    #: A lock, a deadlock, a timeout, a full disk: it will pass, and others may get through meanwhile.
    BUSY = auto()
    #: Nobody foresaw it: a bug of ours, a table that is not there.
    OTHER = auto()


def trouble(error: BaseException) -> Trouble:
    """Read an error that came out of work on the database."""
    state = sqlstate(error)
    if state is None:
        return _without_state(error)
    if state != _QUERY_CANCELED and (state[:2] in _AWAY_CLASSES or state in _AWAY):
        return Trouble.AWAY
    if state[:2] in _BUSY_CLASSES:
        return Trouble.BUSY
    return Trouble.VALUE if state[:2] in _VALUE_CLASSES else Trouble.OTHER


def sqlstate(error: BaseException) -> str | None:
    """PostgreSQL's five characters, from the driver's error below Django's; None where no server said anything."""
    found = getattr(error.__cause__, "sqlstate", None) or getattr(error, "sqlstate", None)
    return found if isinstance(found, str) else None


def _without_state(error: BaseException) -> Trouble:
    if isinstance(error, OperationalError | InterfaceError):
        return Trouble.AWAY
    # Refused before it reached the server: by the driver (a NUL in a text) or by json (a number without end).
    refused = (DataError, IntegrityError, ValueError, TypeError, OverflowError, RecursionError)
    return Trouble.VALUE if isinstance(error, refused) else Trouble.OTHER
