"""What the web process needs beyond the settings: a secret key, and a pool of database connections."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

#: The pool waits twice as long after each failure to connect, up to ``reconnect_timeout``, then begins anew at the next
#: request: by its default of five minutes, pages stayed away for minutes after a database that was back.
POOL: dict[str, Any] = {"min_size": 1, "max_size": 10, "timeout": 5.0, "max_idle": 120.0, "reconnect_timeout": 3.0}


def prepare() -> None:
    """Call before Django is set up. Raises ImproperlyConfigured, saying what to do, when there is no secret key.

    A server under ASGI runs requests in threads that come and go: each would keep a connection of its own, so here, and
    only here, they share a pool (a forked worker process must not inherit one).
    """
    try:
        settings.SECRET_KEY  # noqa: B018 -- reading it is the check
    except ImproperlyConfigured as error:
        raise ImproperlyConfigured(
            "The web process needs SECRET_KEY. Set it to the same value for every part, or set REDRIVE_DATA_DIR to the "
            "data directory of 'manage.py up', which keeps one there."
        ) from error
    default = settings.DATABASES["default"]
    default["CONN_MAX_AGE"] = 0
    default["OPTIONS"]["pool"] = dict(POOL)
