"""Is the server up? A query answers, never the pid file."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

import psycopg
from psycopg import sql

from tasks.embedded.address import HOST, Address
from tasks.embedded.errors import EmbeddedError

#: Below the ports that systems hand out to outgoing connections, so that ours is seldom taken while we are down.
PORTS = range(15_000, 32_000)
#: The wheel's server has no TLS; what PGSSLMODE and the like say in our environment is meant for other servers.
NO_TLS = {"sslmode": "disable", "gssencmode": "disable"}


def connect(address: Address, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
    """A short-lived connection for our own questions (autocommit; gives up after 3 s)."""
    return psycopg.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password,
        dbname=database,
        connect_timeout=3,
        options="-c statement_timeout=10s",
        autocommit=True,
        sslmode=NO_TLS["sslmode"],
        gssencmode=NO_TLS["gssencmode"],
    )


def answers(address: Address, pgdata: Path) -> bool:
    """Whether the server at ``address`` answers a query and is the one of ``pgdata``.

    A copied data directory has the same port and password in it: the folder tells the copy from the original. A folder
    that was renamed under a running server is still that server.
    """
    try:
        with connect(address) as connection:
            row = connection.execute("SELECT current_setting('data_directory')").fetchone()
    except psycopg.Error:
        return False
    served = Path(str(row[0])) if row else pgdata
    try:
        return os.path.samefile(served, pgdata)
    except FileNotFoundError:
        return True
    except PermissionError:
        return served == pgdata


def refuses_password(address: Address) -> bool:
    """Whether a server is there and does not take the password that is kept in the data directory."""
    try:
        connect(address).close()
    except psycopg.OperationalError as error:
        # libpq gives no SQLSTATE for a refused connection; our server speaks English (locale C).
        return "password authentication failed" in str(error)
    return False


def ensure_database(address: Address) -> None:
    """Make the database ``redrive`` where it is missing. Raises EmbeddedError where that fails."""
    try:
        with connect(address) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(query, [address.database]).fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(address.database)))
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise EmbeddedError(f"The database {address.database!r} could not be made: {reason}.") from error


def free_port(preferred: int | None) -> int:
    """``preferred`` where nobody listens on it, else another free one. Somebody may still take it before we do."""
    if preferred and _is_free(preferred):
        return preferred
    candidates = random.sample(PORTS, 200)
    return next((port for port in candidates if _is_free(port)), 0) or _any_port()


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As PostgreSQL binds: the last server's connections in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError):
            return False
    return True


def _any_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
