"""How much work a template or a schema may make of one value. Both are configuration, and small ones can ask for years.

Work is counted in steps, so that the same input ends the same way on any machine; the processor time is a backstop for
steps that are long. Nobody has to hand the meter on: it belongs to the thread or asyncio task that runs the work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: What may run in the event loop, where all calls of the process wait for it: steps and seconds.
BRIEF = (5_000, 0.05)
#: What one render or check may take at all, in a thread.
FULL = (3_000_000, 10.0)
#: Characters that are copied or compared for about the cost of one step.
STEP_CHARACTERS = 64


class Exhausted(BaseException):
    """The work is more than was allowed. No Exception: Django's ``{% if %}`` would take it for an answer of no."""


class Meter:
    """The steps that are left, and the processor time of this thread at which it is over."""

    __slots__ = ("steps", "until")

    def __init__(self, steps: int, seconds: float) -> None:
        self.steps = steps
        self.until = time.thread_time() + seconds

    def spend(self, steps: int) -> None:
        """Raise Exhausted where that is more than is left."""
        self.steps -= steps
        if self.steps < 0 or time.thread_time() > self.until:
            raise Exhausted


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


def spend(steps: int = 1, *, characters: int = 0) -> None:
    """Count work on the meter that runs, if any. Raises Exhausted."""
    meter = _meter.get()
    if meter is not None:
        meter.spend(steps + characters // STEP_CHARACTERS)


@contextmanager
def metered(steps: int, seconds: float) -> Iterator[None]:
    """Let all work inside count on a new meter; one that runs already stays the one that counts."""
    token = _meter.set(_meter.get() or Meter(steps, seconds))
    try:
        yield
    finally:
        _meter.reset(token)


async def off_loop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do brief work here, and what turns out not to be brief in a thread, from its beginning. Raises Exhausted."""
    try:
        with metered(*BRIEF):
            return work(*args, **kwargs)
    except Exhausted:
        return await in_thread(work, *args, **kwargs)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the work in a thread, so that the others of the process stream on meanwhile. Raises Exhausted."""

    def fully() -> T:
        with metered(*FULL):
            return work(*args, **kwargs)

    return await asyncio.to_thread(fully)
