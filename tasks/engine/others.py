"""The providers that handlers name themselves (``ctx.llm(…, provider=…)``): read, and with a place under their limits.

The claim has counted the provider of the attempt's kind; one that is only named is counted here, at its first call. It
is waited for a while, not for ever: an attempt that waits keeps a slot, and perhaps a place that others wait for.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tasks.engine.database import DatabaseThread
from tasks.engine.snapshot import NamedProvider, read_provider
from tasks.engine.trouble import Trouble, trouble
from tasks.errors import ConfigurationFault, ProviderAtRest
from tasks.lifecycle import Full, take_place

logger = logging.getLogger(__name__)
T = TypeVar("T")
#: Between two looks at a limit that is used up, and at one that another process holds at that moment.
LOOK_SECONDS, BUSY_SECONDS = 0.25, 0.05
#: Waited so long before the attempt is put off; where calls of it are paid for already, for this part of its timeout.
WAIT_SECONDS, PATIENCE = 10.0, 0.5

#: What the same statement may get past the next time.
PASSING = frozenset({Trouble.AWAY, Trouble.BUSY})
UNANSWERED = "the database does not answer"

WHAT = {
    "running": "{used} of at most {limit} tasks are under way there",
    "requests": "{used} of at most {limit} requests a minute are used up",
    "tokens": "{used} of at most {limit} tokens a minute are used up, or will be by what runs",
}


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a call may wait for its provider: until ``until``, monotonic. ``tell`` hears why, before each wait."""

    until: float
    tell: Callable[[str], None]


class OtherProviders:
    """Reads and takes beside the event loop, in the thread of this connection.

    A database that is away, or too busy to answer, is waited for like a limit that is used up.
    """

    def __init__(self, database: DatabaseThread) -> None:
        self._database = database
        #: Until when nobody of this process looks at a limit again that one has just found used up, monotonic.
        self._again_at: dict[str, float] = {}
        #: What that one has found.
        self._said: dict[str, str] = {}
        #: The same for the database, once it has failed.
        self._back_at = 0.0

    async def find(self, name: str, wait: Wait) -> NamedProvider:
        """The provider of that name, as it stands at this moment. Raises ConfigurationFault or ProviderAtRest."""
        while isinstance(found := await self._run(read_provider, name), Unanswered):
            await _rest(f"the provider {name!r} cannot be looked up: {UNANSWERED}", wait, self._back_at)
        if found is None:
            raise ConfigurationFault(f"There is no provider {name!r}.")
        if found.resting:
            raise ProviderAtRest(found.resting)
        return found

    async def take_place(self, attempt_id: int, name: str, wait: Wait) -> None:
        """Take a place under the limits of this provider.

        Raises ProviderAtRest after a wait in vain, and what ``wait.tell`` raises.
        """
        while True:
            # However many wait here, they ask the thread that claims and saves no more often than one would.
            if time.monotonic() >= self._again_at.get(name, 0.0):
                place = await self._run(take_place, attempt_id, name)
                if isinstance(place, Unanswered):
                    self._said[name], self._again_at[name] = UNANSWERED, self._back_at
                elif place.taken:
                    return
                else:
                    self._said[name] = _told(place.full)
                    self._again_at[name] = time.monotonic() + (LOOK_SECONDS if place.full else BUSY_SECONDS)
            await _rest(f"the provider {name!r} has no room: {self._said[name]}", wait, self._again_at[name])

    async def _run(self, function: Callable[..., T], *args: Any) -> T | Unanswered:
        """Raises what no other try can mend."""
        if time.monotonic() < self._back_at:
            return Unanswered()
        try:
            return await self._database.run(function, *args)
        except Exception as error:
            if trouble(error) not in PASSING:
                raise
            logger.warning("The database had no answer for a handler (%s); it is asked again.", error)
            self._back_at = time.monotonic() + LOOK_SECONDS
            return Unanswered()


class Unanswered:
    """The database had no answer; another try may."""


async def _rest(why: str, wait: Wait, until: float) -> None:
    """Wait until ``until``, and a little: not in step with the others. Raises ProviderAtRest where time is up."""
    if time.monotonic() >= wait.until:
        raise ProviderAtRest(why)
    wait.tell(why)
    await asyncio.sleep(max(0.0, until - time.monotonic()) + BUSY_SECONDS * random.random())  # noqa: S311 - no secret


def patience(timeout_seconds: float, *, has_paid: bool) -> float:
    """How long an attempt waits for a place: longer where giving up would pay for its calls a second time."""
    longest = timeout_seconds * PATIENCE
    return longest if has_paid else min(WAIT_SECONDS, longest)


def _told(full: Full | None) -> str:
    return WHAT[full.what].format(used=full.used, limit=full.limit) if full else "others take what there is"
