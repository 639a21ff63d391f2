"""The work: none, and waiting."""

from __future__ import annotations

import asyncio
import time

from tasks import handler
from tasks.engine.context import Context


@handler("bench.empty")
async def empty(context: Context) -> None:
    """Nothing."""


@handler("bench.sleep")
async def sleep(context: Context) -> None:
    """Wait as long as the payload says, seconds."""
    await asyncio.sleep(context.payload)


@handler("bench.when")
async def when(context: Context) -> float:
    """The moment, on the clock that all processes of a machine share."""
    return time.monotonic()
