"""The model calls that a handler makes with ``ctx.llm``: on the path that prompts take, and over with its attempt."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_args

from tasks.engine.context import Prompt, Question
from tasks.engine.others import LOOK_SECONDS, OtherProviders, Wait, patience
from tasks.errors import AnswerMalformed, ConfigurationFault, InputInvalid
from tasks.lifecycle import Claimed
from tasks.llm.call import converse
from tasks.llm.prompt import composed
from tasks.llm.provider import Clients
from tasks.llm.request import Message, PromptSpec, ProviderConfig, Role
from tasks.llm.schema import check_schema
from tasks.llm.template import MAX_TEXT
from tasks.llm.text import whole

if TYPE_CHECKING:
    from tasks.engine.runner import Running

logger = logging.getLogger(__name__)
#: How long an attempt that is over waits for calls that it has stopped. Less than a drain gives it.
CLOSE_SECONDS = 0.5
#: Calls of one attempt, and characters of messages and answers that its trail keeps: all of it is stored with its end.
MOST_CALLS, MOST_KEPT = 200, 16 * 1024 * 1024


class Asker:
    """Makes the calls of one attempt, one after the other, so that it takes no more than one place of any limit.

    Made in the event loop of the worker; asked there or in any thread.
    """

    def __init__(self, running: Running, clients: Clients, others: OtherProviders, is_held: Callable[[], bool]) -> None:
        """``is_held``: whether this process has the lease of the attempt."""
        self._running = running
        self._clients = clients
        self._others = others
        #: The providers where it has taken a place, beside that of its kind.
        self._places: set[str] = set()
        self._is_held = is_held
        self._loop = asyncio.get_running_loop()
        self._turn = asyncio.Lock()
        #: The calls under way, each by the task that makes it; done once it is in the trail.
        self._open: dict[asyncio.Task[Any], asyncio.Future[None]] = {}
        self._is_over = False
        #: Pieces of answers so far.
        self._pieces = 0
        #: The last failures, and the provider of each.
        self._failed: list[tuple[BaseException, ProviderConfig]] = []

    async def ask(self, question: Question) -> Any:
        """The answer: parsed JSON that fits the schema, or text without one. Raises what ``converse`` raises.

        Also ConfigurationFault, InputInvalid or ProviderAtRest before any call, and CancelledError once the attempt is
        over.
        """
        if asyncio.get_running_loop() is not self._loop:
            return await asyncio.wrap_future(self._hand_over(question))
        return await self._ask(question)

    def ask_from_thread(self, question: Question) -> Any:
        """The same for a thread, which waits. Raises RuntimeError in an event loop, which must not wait."""
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("ctx.llm_sync would block the event loop; write 'await ctx.llm(…)' in an async handler.")
        try:
            return self._hand_over(question).result()
        except concurrent.futures.CancelledError:
            # Of asyncio, which no 'except Exception' of the handler takes for a failure of the call.
            raise asyncio.CancelledError("the attempt is over") from None

    def provider_of(self, error: BaseException) -> ProviderConfig | None:
        """The provider whose call ``error`` comes from, itself or as its cause; None where it comes from none."""
        by_id = {id(failure): provider for failure, provider in self._failed}
        seen: set[int] = set()
        cause: BaseException | None = error
        while cause is not None and id(cause) not in seen:
            if found := by_id.get(id(cause)):
                return found
            seen.add(id(cause))
            cause = cause.__cause__ or cause.__context__
        return None

    def stop(self) -> None:
        """From now on nothing is asked, and what is under way is aborted."""
        self._is_over = True
        for task in self._beside():
            task.cancel()

    async def close(self) -> None:
        """Stop, and wait until what was under way is in the trail, for ``CLOSE_SECONDS`` at the most.

        Not until its tasks have ended: one that a handler left behind may take no notice.
        """
        left = [self._open[task] for task in self._beside()]
        self.stop()
        if left:
            _, open_still = await asyncio.wait(left, timeout=CLOSE_SECONDS)
            if open_still:
                attempt_id = self._running.job.claimed.attempt_id
                logger.warning("Calls of attempt %d do not stop: %d are not in its trail.", attempt_id, len(open_still))

    def _beside(self) -> set[asyncio.Task[Any]]:
        """The tasks that have a call under way, beside the handler itself."""
        return self._open.keys() - {self._running.task} if self._open else set()

    def _hand_over(self, question: Question) -> concurrent.futures.Future[Any]:
        return asyncio.run_coroutine_threadsafe(self._ask(question), self._loop)

    async def _ask(self, question: Question) -> Any:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we run in one
        self._open[task] = done = self._loop.create_future()
        try:
            async with self._turn:
                # What is refused is refused after a turn of the loop: a handler that asks again and again whatever it
                # is told would else keep the loop from all others, and from the end of its own time.
                await asyncio.sleep(0)
                self._refuse_once_over()
                return await self._call(question)
        finally:
            del self._open[task]
            done.set_result(None)

    def _may_send(self) -> bool:
        return not (self._is_over or self._running.is_stopped) and self._is_held()

    def _refuse_once_over(self) -> None:
        """A handler that took no notice of the end of its attempt pays for nothing more."""
        if self._is_over or self._running.is_stopped:
            raise asyncio.CancelledError("the attempt is over")
        calls = self._running.calls
        kept = sum(len(call.answer) + sum(len(said["content"]) for said in call.messages) for call in calls)
        if len(calls) >= MOST_CALLS or kept >= MOST_KEPT:
            raise ConfigurationFault(
                f"an attempt makes at most {MOST_CALLS} model calls, and of their texts {MOST_KEPT} characters; split"
                " the work into several tasks"
            )

    async def _call(self, question: Question) -> Any:
        provider, simulated = await self._provider(question.provider)
        spec = self._spec(question, is_own=provider is self._running.job.provider)
        running, before = self._running, self._pieces
        try:
            result = await converse(
                clients=self._clients,
                provider=provider,
                spec=spec,
                messages=composed(whole(question.system), spec.output_schema, turns(question.prompt)),
                on_progress=lambda pieces: self._tell(before + pieces),
                calls=running.calls,
                headers=marks(running.job.claimed) if simulated else None,
                is_ours=self._may_send,
            )
        except Exception as error:
            self._failed = [*self._failed[-9:], (error, provider)]
            running.repairs += error.repairs if isinstance(error, AnswerMalformed) else 0
            raise
        running.repairs += result.repairs
        running.mended += result.mended
        return result.value

    def _tell(self, pieces: int) -> None:
        self._pieces = pieces
        self._running.progress.add(tokens=pieces)

    async def _provider(self, name: str | None) -> tuple[ProviderConfig, bool]:
        """The provider, and whether it is the simulated one. The kind's own was let pass by the claim."""
        job = self._running.job
        if name is None or (job.provider and name == job.provider.name):
            if job.provider is None:
                raise ConfigurationFault(
                    f"The kind {job.kind.name!r} has no provider; give it one, or name one: ctx.llm(…, provider=…)."
                )
            return job.provider, job.simulated
        running = self._running
        wait = Wait(
            time.monotonic() + patience(running.job.kind.timeout_seconds, has_paid=bool(running.calls)),
            self._waits(),
        )
        found = await self._others.find(name, wait)
        if found.limited and name not in self._places:
            # Kept until the attempt ends, as that of its kind's provider is.
            await self._others.take_place(running.job.claimed.attempt_id, name, wait)
            self._places.add(name)
            # A hold or a rest may have come meanwhile.
            found = await self._others.find(name, wait)
        return found.config, found.simulated

    def _waits(self) -> Callable[[str], None]:
        """What is done before each wait of one call."""
        running, said = self._running, False

        def tell(why: str) -> None:
            nonlocal said
            self._refuse_once_over()
            if not said:
                said = True
                running.log.write(f"waits: {why}", {})
            # Waiting for a place is no stall, until the next look either.
            running.progress.at = time.monotonic() + 2 * LOOK_SECONDS

        return tell

    def _spec(self, question: Question, *, is_own: bool) -> PromptSpec:
        kind = self._running.job.kind
        model = question.model or (kind.model if is_own else "")
        if not model:
            whose = f"the kind {kind.name!r} has none" if is_own else "another provider has other models"
            raise ConfigurationFault(f"ctx.llm needs a model, as {whose}: ctx.llm(…, model=…).")
        chosen = {"temperature": question.temperature, "max_output_tokens": question.max_output_tokens}
        return PromptSpec(
            model=model,
            system_prompt="",
            prompt="",
            output_schema=_checked(json.dumps(question.schema)) if question.schema is not None else None,
            **{**kind.settings, **{name: value for name, value in chosen.items() if value is not None}},
        )


@lru_cache(maxsize=256)
def _checked(schema: str) -> dict[str, Any]:
    try:
        return check_schema(schema)
    except ValueError as error:
        raise ConfigurationFault(f"The schema given to ctx.llm cannot be used: {error}.") from error


def turns(prompt: Prompt) -> list[Message]:
    """The turns of a conversation: one of the user for a text. Raises TypeError or InputInvalid for what is none."""
    said: list[Message] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    for turn in said:
        if not (isinstance(turn, dict) and turn.get("role") in get_args(Role) and isinstance(turn.get("content"), str)):
            raise TypeError(f"ctx.llm takes a text, or messages with role ({', '.join(get_args(Role))}) and content.")
    size = sum(len(turn["content"]) for turn in said)
    if size > MAX_TEXT:
        raise InputInvalid(f"the messages come to {size} characters; at most {MAX_TEXT} are sent")
    if not any(turn["content"].strip() for turn in said):
        raise InputInvalid("the prompt is empty")
    return [{"role": turn["role"], "content": whole(turn["content"])} for turn in said]


def marks(claimed: Claimed) -> dict[str, str]:
    """Told to the simulated provider only: real ones learn nothing of our ids."""
    return {
        "x-redrive-task": str(claimed.task_id),
        "x-redrive-cycle": str(claimed.cycle),
        "x-redrive-attempt": str(claimed.attempt_id),
    }
