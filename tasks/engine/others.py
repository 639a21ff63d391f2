"""The providers that handlers name themselves (``ctx.llm(…, provider=…)``): read, and with a place under their limits.

The claim has counted the provider of the attempt's kind; one that is only named is counted here, at its first call. It
is waited for a while, not for ever: an attempt that waits keeps a slot, and perhaps a place that others wait for.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from tasks.engine.database import DatabaseThread
from tasks.engine.snapshot import NamedProvider, read_provider
from tasks.errors import ConfigurationFault, ProviderAtRest
from tasks.lifecycle import Full, take_place

#: Between two looks at a limit that is used up, and at one that another process holds at that moment.
LOOK_SECONDS, BUSY_SECONDS = 0.25, 0.05
#: Waited so long before the attempt is put off; where calls of it are paid for already, for this part of its timeout.
WAIT_SECONDS, PATIENCE = 10.0, 0.5

WHAT = {
    "running": "{used} of at most {limit} tasks are under way there",
    "requests": "{used} of at most {limit} requests a minute are used up",
    "tokens": "{used} of at most {limit} tokens a minute are used up, or will be by what runs",
}


class OtherProviders:
    """Reads and takes beside the event loop, in the thread of this connection."""

    def __init__(self, database: DatabaseThread) -> None:
        self._database = database
        #: Until when nobody of this process looks at a limit again that one has just found used up, monotonic.
        self._again_at: dict[str, float] = {}

    async def find(self, name: str) -> NamedProvider:
        """The provider of that name, as it stands at this moment. Raises ConfigurationFault or ProviderAtRest."""
        found = await self._database.run(read_provider, name)
        if found is None:
            raise ConfigurationFault(f"There is no provider {name!r}.")
        if found.resting:
            raise ProviderAtRest(found.resting)
        return found

    async def take_place(
        self, attempt_id: int, name: str, seconds: float, waits: Callable[[str], Awaitable[None]]
    ) -> None:
        """Take a place under the limits of this provider. ``waits`` is told why, before each wait.

        Raises ProviderAtRest after ``seconds`` in vain, and what ``waits`` raises.
        """
        until, full = time.monotonic() + seconds, None
        while True:
            # However many wait here, they ask the thread that claims and saves no more often than one would.
            if time.monotonic() >= self._again_at.get(name, 0.0):
                place = await self._database.run(take_place, attempt_id, name)
                if place.taken:
                    return
                full = place.full
                self._again_at[name] = time.monotonic() + (LOOK_SECONDS if full else BUSY_SECONDS)
            why = f"the provider {name!r} has no room: {_told(full)}"
            if time.monotonic() >= until:
                raise ProviderAtRest(why)
            await waits(why)
            # Not in step with the others.
            await asyncio.sleep(max(0.0, self._again_at[name] - time.monotonic()) + BUSY_SECONDS * random.random())  # noqa: S311 - no secret


def patience(timeout_seconds: float, *, has_paid: bool) -> float:
    """How long an attempt waits for a place: longer where giving up would pay for its calls a second time."""
    longest = timeout_seconds * PATIENCE
    return longest if has_paid else min(WAIT_SECONDS, longest)


def _told(full: Full | None) -> str:
    return WHAT[full.what].format(used=full.used, limit=full.limit) if full else "others take what there is"
