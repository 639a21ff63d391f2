"""The ear: one LISTEN connection per worker process that wakes its claim loop. Polling is the truth; this is speed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import psycopg
from django.conf import settings
from django.db import DatabaseError, connection

from tasks.lifecycle.announce import CHANNEL, MINIMUM_GAP_SECONDS

logger = logging.getLogger(__name__)
RECONNECT_SECONDS = 1.0
#: How often a quiet connection is asked whether it still hears, and how long its answer may take.
ASK_SECONDS = 30.0
ANSWER_SECONDS = 10.0


async def listen(wake: Callable[[], None]) -> None:
    """Call ``wake`` for each notice and at each (re)connection, until cancelled. A lost server is tried again."""
    while True:
        try:
            await _listen_once(wake)
        except (psycopg.Error, DatabaseError, OSError, TimeoutError) as error:
            logger.info("The wake-up connection ended (%s); polling goes on.", type(error).__name__)
        await asyncio.sleep(RECONNECT_SECONDS)


async def _listen_once(wake: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    ear = await psycopg.AsyncConnection.connect(**_parameters(), autocommit=True)
    try:
        await ear.execute(f"LISTEN {CHANNEL}")
        wake()
        while True:
            async for _ in ear.notifies(timeout=ASK_SECONDS):
                wake()
                # The sender suppresses notices within the gap; whatever they announced is there once it is over.
                loop.call_later(MINIMUM_GAP_SECONDS * 1.1, wake)
            async with asyncio.timeout(ANSWER_SECONDS):
                await ear.execute("SELECT 1")
    finally:
        await ear.close()


def _parameters() -> dict[str, Any]:
    """Those of REDRIVE_LISTEN_URL, else Django's own, less those that only a synchronous connection takes."""
    if settings.REDRIVE_LISTENER:
        return dict(settings.REDRIVE_LISTENER)
    parameters = dict(connection.get_connection_params())
    for name in ("cursor_factory", "context", "pool"):
        parameters.pop(name, None)
    return parameters
