"""Charges: each is one line in a file that Redrive knows nothing of, where two lines are one customer too angry."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path
from typing import Any

from tasks import done, handler, not_done, reconcile
from tasks.engine.context import Context, UnknownContext
from tasks.engine.truth import Report

#: Seconds before and after the effect, at most each: a kill finds some on either side of it.
LONGEST = 1.0


def ledger() -> Path:
    """The file; its path comes from the drill."""
    return Path(os.environ["DRILL_LEDGER"])


def booked_in(ledger: Path) -> list[str]:
    """Its lines so far, each the ids of task and attempt."""
    return ledger.read_text().splitlines() if ledger.exists() else []


def book(context: Context) -> dict[str, Any]:
    """The effect: durable, and not idempotent."""
    descriptor = os.open(ledger(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{context.task_id} {context.attempt_id}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return {"charged": str(context.task_id)}


@handler("drill.charge")
async def charge(context: Context) -> dict[str, Any]:
    """Waits, books, waits; in the event loop."""
    await asyncio.sleep(random.uniform(0, LONGEST))
    booked = book(context)
    await asyncio.sleep(random.uniform(0, LONGEST))
    return booked


@handler("drill.charge.sync")
def charge_sync(context: Context) -> dict[str, Any]:
    """The same in a thread."""
    time.sleep(random.uniform(0, LONGEST))
    booked = book(context)
    time.sleep(random.uniform(0, LONGEST))
    return booked


def look(context: UnknownContext) -> Report:
    """The truth is in the ledger."""
    booked = any(line.startswith(f"{context.task_id} ") for line in booked_in(ledger()))
    return done({"charged": str(context.task_id)}) if booked else not_done


@reconcile("drill.charge")
async def was_charged(context: UnknownContext) -> Report:
    """In the event loop; after a while, so that kills find it asking."""
    await asyncio.sleep(random.uniform(0, 0.3))
    return look(context)


@reconcile("drill.charge.sync")
def was_charged_sync(context: UnknownContext) -> Report:
    """In a thread."""
    time.sleep(random.uniform(0, 0.3))
    return look(context)
