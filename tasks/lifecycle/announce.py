"""The wake-up: one NOTIFY without payload, after commit, at most one per 100 ms per process.

A NOTIFY takes a lock common to the whole server when its transaction commits, so it never rides in the caller's
transaction. A suppressed one is covered by the listener, which looks again 100 ms after each wake-up, and by polling.
"""

from __future__ import annotations

import logging
import threading
import time

from django.conf import settings
from django.db import DatabaseError, connection, transaction

CHANNEL = "redrive_ready"
MINIMUM_GAP_SECONDS = 0.1

logger = logging.getLogger(__name__)
_gate = threading.Lock()
_last_sent = 0.0


def announce_ready() -> None:
    """Wake idle workers once the current transaction has committed; nothing happens when it rolls back."""
    if settings.REDRIVE_NOTIFY:
        transaction.on_commit(_notify, robust=True)


def _notify() -> None:
    global _last_sent
    with _gate:
        now = time.monotonic()
        if now - _last_sent < MINIMUM_GAP_SECONDS:
            return
        _last_sent = now
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")
    except DatabaseError:
        # The work is committed; polling finds it within a second.
        logger.warning("The wake-up could not be sent; workers find the task by polling.", exc_info=True)
