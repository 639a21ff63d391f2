"""What a handler is given, and what it may answer when it is asked about vanished work."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tasks.llm.request import Message

if TYPE_CHECKING:
    # They know the models and the openai client, which not every process that registers handlers needs.
    from tasks.engine.asking import Asker
    from tasks.engine.log import Log
    from tasks.lifecycle import Claimed


#: The largest whole number that a browser reads exactly.
LARGEST = 2**53

Prompt = str | Sequence[Message]


@dataclass(slots=True)
class Progress:
    """The latest that a running attempt told of itself; the worker stores it twice a second."""

    value: dict[str, Any] | None = None
    changed: bool = False
    #: When it last told anything, monotonic.
    at: float = field(default_factory=time.monotonic)

    def tell(self, **value: Any) -> None:
        """Replace what is known. Cheap: nothing is written here."""
        self.value = value
        self.changed = True
        self.at = time.monotonic()

    def add(self, **value: Any) -> None:
        """The same, beside what is known under other names."""
        self.tell(**{**(self.value or {}), **value})


@dataclass(frozen=True, slots=True)
class Question:
    """What a handler asks. None: the kind's own. Not a template: what it says is sent as it is."""

    prompt: Prompt
    system: str = ""
    schema: dict[str, Any] | None = None
    provider: str | None = None
    model: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """One attempt, seen from its handler: ``payload`` is the task's JSON value."""

    payload: Any
    _claimed: Claimed = field(repr=False)
    _progress: Progress = field(repr=False)
    _log: Log = field(repr=False)
    _asker: Asker = field(repr=False)

    @property
    def task_id(self) -> UUID:
        """The task's id; the same in each attempt."""
        return self._claimed.task_id

    @property
    def attempt_id(self) -> int:
        """This attempt's id."""
        return self._claimed.attempt_id

    @property
    def kind(self) -> str:
        """The name of the task's kind."""
        return self._claimed.kind

    @property
    def cycle(self) -> int:
        """1, and one more for each time that a person sent the task again."""
        return self._claimed.cycle

    @property
    def session_id(self) -> str:
        """As it was submitted; empty where none was."""
        return self._claimed.session_id

    @property
    def user_id(self) -> str:
        """As it was submitted; empty where none was."""
        return self._claimed.user_id

    @property
    def trace_id(self) -> str:
        """As it was submitted; empty where none was."""
        return self._claimed.trace_id

    @property
    def tags(self) -> list[str]:
        """As they were submitted."""
        return self._claimed.tags

    def progress(self, step: int, total: int | None = None, text: str = "") -> None:
        """Tell how far the work is: ``step`` of ``total``, with a few words for the person who waits."""
        self._progress.add(step=_count(step), total=None if total is None else _count(total), text=str(text)[:200])

    def log(self, text: str, /, **fields: Any) -> None:
        """Write a line for the people who look at this attempt: ``text``, then ``name=value`` for each field.

        Kept without secrets, and at most ``tasks.engine.log.MOST_LINES`` of them; cheap: nothing is written here. Also
        goes to Python's logging, as ``tasks.handler``.
        """
        self._log.write(text, fields)

    async def llm(
        self,
        prompt: Prompt,
        *,
        system: str = "",
        schema: dict[str, Any] | None = None,
        provider: str | None = None,
        model: str | None = None,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
    ) -> Any:
        """Ask a model as a prompt kind does: streamed, repaired, kept in the trail, paid for once.

        ``prompt``: a text, or messages (``{"role": …, "content": …}``); nothing in it is a template. ``schema``: a JSON
        Schema; the answer is then JSON that fits it, else text. ``provider``, ``model`` and the rest are the kind's own
        where None; another provider needs a model too. Calls of one attempt run one after the other.

        Under the limits of another provider the attempt takes a place with its first call there, and keeps it until it
        ends. Where there is no room it waits: for half of its timeout where calls of it are paid for already, else for
        10 s at the most. Those who wait and the tasks of the provider's own kinds take turns.

        Raises what is wrong with the answer (``tasks.errors``), what the SDK raises for a call that failed, and
        ProviderAtRest where a provider is on hold, cools, or had no room: the attempt is put off at no cost. Leave
        it alone, and it is retried or dies as its error code says. asyncio.CancelledError once the attempt is over.
        """
        question = Question(prompt, system, schema, provider, model, temperature, max_output_tokens)
        return await self._asker.ask(question)

    def llm_sync(self, prompt: Prompt, **options: Any) -> Any:
        """``llm`` for a sync handler: the same, with the same options, but its thread waits for the answer.

        Raises RuntimeError in an event loop, which must not wait.
        """
        return self._asker.ask_from_thread(Question(prompt, **options))


@dataclass(frozen=True, slots=True)
class UnknownContext:
    """An attempt whose process vanished, seen from the function that tells what became of its work.

    ``attempt_id`` and ``started_at`` are those of that attempt. ``process_ended``: whether its process is known to have
    ended; one that is frozen or cut off from the database may still do the work. ``asks``: how many times this was
    asked, with this one.
    """

    task_id: UUID
    attempt_id: int
    started_at: datetime
    process_ended: bool
    kind: str
    cycle: int
    payload: Any
    asks: int
    session_id: str
    user_id: str
    trace_id: str
    tags: list[str]


def _count(value: int) -> int:
    """A whole number that JSON and its readers keep as it is."""
    return max(-LARGEST, min(int(value), LARGEST))
