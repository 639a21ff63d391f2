"""Where the database is: DATABASE_URL, or the embedded server of the data directory. Opens no connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from config import env

# A black-holed connection is noticed within 15 s.
CONNECTION_OPTIONS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "redrive",
}
#: psycopg's own default. None prepares nothing at all.
PREPARE_THRESHOLD = 5
#: Limits of the session. Sent as the connection starts, which PgBouncer refuses: a session of its clients is nobody's.
SESSION_OPTIONS = "-c statement_timeout=30s -c idle_in_transaction_session_timeout=60s -c lock_timeout=20s"


def stored_secret_key(data_dir: Path) -> str:
    """The key that ``manage.py up`` made in the data directory, or an empty string."""
    path = data_dir / "secret_key"
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def from_environment(data_dir: Path, *, pgbouncer: bool = False) -> dict[str, Any]:
    """Django's settings of the default database.

    With DATABASE_URL: that server. Without: the embedded one, whose port and password the backend reads from the data
    directory at the moment it connects, so that settings import while no server runs. ``pgbouncer``: the URL leads to
    PgBouncer in transaction mode, where each transaction may have another session of the server.
    """
    url = env.text("DATABASE_URL")
    # Only statements that ask for it (tasks/lifecycle/prepared.py): Django's own bind in the client.
    options = {**CONNECTION_OPTIONS, "prepare_threshold": PREPARE_THRESHOLD}
    base: dict[str, Any] = {"CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True, "OPTIONS": options}
    if not url:
        options["options"] = SESSION_OPTIONS
        return {**base, "ENGINE": "tasks.embedded.backend", "NAME": "redrive"}
    if pgbouncer:
        options["prepare_threshold"] = None
        base["DISABLE_SERVER_SIDE_CURSORS"] = True
    else:
        options["options"] = SESSION_OPTIONS
    parts = _parts("DATABASE_URL", url)
    named = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    settings = {django: str(parts.pop(libpq)) for libpq, django in named.items() if libpq in parts}
    if not settings.get("NAME"):
        raise ImproperlyConfigured("DATABASE_URL names no database (postgresql://user@host:5432/name).")
    return {**base, "ENGINE": "django.db.backends.postgresql", **settings, "OPTIONS": {**options, **parts}}


def listener() -> dict[str, Any]:
    """libpq's parameters of the connections that wait for NOTIFY, of REDRIVE_LISTEN_URL; empty: those of the rest."""
    url = env.text("REDRIVE_LISTEN_URL")
    return {**CONNECTION_OPTIONS, "options": SESSION_OPTIONS, **_parts("REDRIVE_LISTEN_URL", url)} if url else {}


def _parts(variable: str, url: str) -> dict[str, Any]:
    """What the URL says, in libpq's words. Raises ImproperlyConfigured with nothing of the URL in it.

    libpq quotes the URL in its complaint, password and all. And a password with a bare ``@`` or ``/`` is read as parts
    of host, port and name, which every later error about the connection would repeat: it is refused here.
    """
    try:
        parts = conninfo_to_dict(url)
    except ProgrammingError:
        parts = None
    if parts is None or not _is_clear(url) or not _are_ports(str(parts.get("port", ""))):
        raise ImproperlyConfigured(
            f"{variable} is not a PostgreSQL URL (postgresql://user:password@host:5432/name). Special characters of"
            " the password must be percent-encoded: @ is %40, / is %2F, % is %25."
        )
    return parts


def _is_clear(url: str) -> bool:
    """Whether at most one bare ``@`` stands before the options, and it ends the part before the host."""
    authority, _, name = url.partition("://")[2].partition("?")[0].partition("/")
    return authority.count("@") <= 1 and "@" not in name


def _are_ports(text: str) -> bool:
    """Whether this is a port, several with commas (one for each host), or nothing."""
    return all(port.isascii() and (port.isdigit() or not port) for port in text.split(","))
