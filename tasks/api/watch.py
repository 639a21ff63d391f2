"""Who waits for news of which task: one look at the database a moment for all streams of this process together."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

logger = logging.getLogger(__name__)
#: Seconds between two looks.
INTERVAL = 0.5


@dataclass(frozen=True, slots=True)
class News:
    """What a look found of one task: its state, as ``tasks.api.state`` tells it, and its new moves in order."""

    state: dict[str, Any]
    moves: list[dict[str, Any]]


#: Reads the tasks of ``{task: last move known}``: the state of each, and its moves after that one.
Look = Callable[[Mapping[UUID, int]], Awaitable[dict[UUID, News]]]


@dataclass(eq=False)
class Listener:
    """One stream's wish to hear of one task: the state that it knows, the moves not taken yet, and a bell."""

    state: dict[str, Any]
    moves: list[dict[str, Any]] = field(default_factory=list)
    bell: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def known(self) -> int:
        """The last move that it knows."""
        return int(self.state["event_seq"])

    def tell(self, news: News) -> None:
        """Keep what is new to it, and ring; nothing where it knows as much, or more from when it was opened."""
        if news.state == self.state or news.state["event_seq"] < self.known:
            return
        self.moves += [move for move in news.moves if move["seq"] > self.known]
        self.state = news.state
        self.bell.set()

    def take(self) -> News:
        """The state, and the moves that have come since the last time."""
        taken, self.moves = News(self.state, self.moves), []
        self.bell.clear()
        return taken


class Watch:
    """The listeners of one process. Looks only while there are any."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._listeners: defaultdict[UUID, set[Listener]] = defaultdict(set)
        self._looking: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """How many listen."""
        return sum(len(listeners) for listeners in self._listeners.values())

    @asynccontextmanager
    async def listen(self, state: dict[str, Any]) -> AsyncIterator[Listener]:
        """A listener that hears of whatever changes after ``state`` (a task's) while the block runs."""
        task_id, listener = state["id"], Listener(state)
        self._listeners[task_id].add(listener)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on())
        try:
            yield listener
        finally:
            self._listeners[task_id].discard(listener)
            if not self._listeners[task_id]:
                del self._listeners[task_id]

    async def _look_on(self) -> None:
        while self._listeners:
            try:
                await self._look_once()
            except Exception as error:
                # The streams stay open and hear of it all once the database answers again.
                logger.warning("The streams' look at the tasks failed (%s); it is repeated.", error)
            await asyncio.sleep(INTERVAL)

    async def _look_once(self) -> None:
        known = {task_id: min(one.known for one in ones) for task_id, ones in self._listeners.items()}
        for task_id, news in (await self._look(known)).items():
            for listener in self._listeners.get(task_id, ()):
                listener.tell(news)
