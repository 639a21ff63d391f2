"""Handlers that behave, and some that do not."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tasks import done, handler, not_done, reconcile, still_unknown
from tasks.engine.context import Context, UnknownContext
from tasks.engine.truth import Report


class ShopClosed(Exception):
    """A failure that this app alone knows."""


def note(payload: dict[str, Any], what: str) -> None:
    """Append a line to the payload's file: what the outside world saw."""
    with Path(payload["log"]).open("a") as log:
        log.write(f"{what}\n")


@handler("workshop.measure")
async def measure(context: Context) -> dict[str, Any]:
    """Runs in the event loop, tells its progress, and waits until its file is there."""
    context.progress(3, 7, "measuring \x00 twice")
    while not Path(context.payload["until"]).exists():
        await asyncio.sleep(0.02)
    return {"thread": threading.current_thread().name, "cycle": context.cycle, "tags": context.tags}


@handler("workshop.saw")
def saw(context: Context) -> dict[str, Any]:
    """Runs in a thread, beside the event loop."""
    return {"thread": threading.current_thread().name, "length": context.payload["length"] / 2}


@handler("workshop.sell")
def sell(context: Context) -> None:
    """Fails in a way of its own, two frames deep."""
    _look_at_the_door(context.payload)


def _look_at_the_door(payload: dict[str, Any]) -> None:
    raise ShopClosed(f"closed until {payload['opens']}, password=hunter2secret")


@handler("workshop.weigh", payload_schema={"type": "object", "properties": {"grams": {"type": "integer"}}})
async def weigh(context: Context) -> int:
    """Takes only what it can weigh."""
    return int(context.payload["grams"])


@handler("workshop.tell")
async def tell(context: Context) -> str:
    """Writes lines, waits to be told how to end, and ends so."""
    context.log("begun", piece=context.payload["piece"], password="hunter2secret")
    context.log("two\nlines of \x00 text")
    until = Path(context.payload["until"])
    while not until.exists():
        await asyncio.sleep(0.02)
    if (how := until.read_text()) == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    context.log("the last words")
    if how == "fail":
        raise ShopClosed("closed")
    return "told"


@handler("workshop.ask")
async def ask(context: Context) -> Any:
    """Asks the kind's model."""
    return await context.llm(context.payload)


@handler("workshop.ask.sync")
def ask_sync(context: Context) -> Any:
    """Asks it from a thread; notes that it was stopped, and asks once more all the same."""
    try:
        return context.llm_sync(context.payload["prompt"])
    except BaseException as error:
        note(context.payload, type(error).__name__)
        return context.llm_sync("once more")


@handler("workshop.burn")
async def burn(context: Context) -> str:
    """The poison: kills the process that runs it, once it has been told to have begun."""
    if context.payload.get("poison"):
        await asyncio.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(context.payload["seconds"])
    return "not burnt"


@handler("workshop.clock")
async def clock(context: Context) -> float:
    """What time it is, in epoch seconds, as this process sees it."""
    return time.time()


@handler("workshop.deaf")
async def deaf(context: Context) -> None:
    """Does not hear that it is cancelled, and never ends."""
    note(context.payload, "deaf")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


@handler("workshop.stubborn")
def stubborn(context: Context) -> None:
    """A thread, which nobody can stop, that does not end."""
    note(context.payload, "stubborn")
    while True:
        time.sleep(0.05)
        note(context.payload, "works")


@handler("workshop.asleep")
def asleep(context: Context) -> None:
    """A thread that is in one long call."""
    note(context.payload, "asleep")
    time.sleep(3600)


@handler("workshop.bulky")
async def bulky(context: Context) -> str:
    """Gives a result of 1 MiB, once it is asked to stop."""
    note(context.payload, "bulky")
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        return "x" * 2**20
    return "nobody asked"


@handler("workshop.glue")
async def glue(context: Context) -> str:
    """Glues, then waits until its file is there: killed by then, nobody knows whether it has."""
    note(context.payload, f"glued {context.task_id}")
    while not Path(context.payload["until"]).exists():
        await asyncio.sleep(0.02)
    return "dry"


@reconcile("workshop.glue")
def is_glued(context: UnknownContext) -> Report:
    """What the payload says; ``slow``: not before it is asked the second time; ``kills``: its process."""
    note(context.payload, f"asked {context.asks} {os.getpid()} {context.task_id}")
    truth = context.payload["truth"]
    if truth == "broken":
        raise ShopClosed("the glue is locked away, password=hunter2secret")
    if truth == "slow" and context.asks == 1:
        time.sleep(3600)
    if truth == "kills":
        os.kill(os.getpid(), signal.SIGKILL)
    glued = done({"glued": context.attempt_id, "ended": context.process_ended})
    return {"not_done": not_done, "still_unknown": still_unknown}.get(truth, glued)


@handler("workshop.quit")
async def quit_in_a_task(context: Context) -> str:
    """Starts a task that calls sys.exit(), and waits for it or not."""

    async def leave() -> None:
        sys.exit("I have had enough")

    leaving = asyncio.create_task(leave())
    await asyncio.sleep(0.05)
    if context.payload["awaited"]:
        await leaving
    return "stayed"
