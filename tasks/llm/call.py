"""One attempt of a prompt kind: render, call, mend, ask again for a bounded number of times, and keep the trail."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.errors import AnswerMalformed, ConfigurationFault, InputInvalid
from tasks.llm import gate
from tasks.llm.answer import Draft
from tasks.llm.cost import first_cost
from tasks.llm.meter import FULL, Exhausted, in_thread, off_loop
from tasks.llm.payload import is_large
from tasks.llm.problems import Problem, repair_message
from tasks.llm.prompt import render
from tasks.llm.provider import Clients
from tasks.llm.repair import Mended, Unmendable, mend
from tasks.llm.request import CallRecord, Message, PromptSpec, ProviderConfig, Result
from tasks.llm.stream import ask, request_body

#: Answers from this length on are checked in a thread, so that the others of the process stream on meanwhile.
LARGE = 64 * 1024

OnProgress = Callable[[int], None]


async def run_prompt(
    *,
    clients: Clients,
    provider: ProviderConfig,
    spec: PromptSpec,
    payload: Any,
    on_progress: OnProgress | None = None,
    calls: list[CallRecord],
    headers: Mapping[str, str] | None = None,
    is_ours: gate.MaySend | None = None,
) -> Result:
    """Run the prompt once, repairs included, and return what it came to.

    ``calls`` gets one record per HTTP call, also of calls that fail or are cancelled. ``on_progress`` is told how many
    pieces of answers (about tokens, when streamed) have come so far in this attempt; it is never told less than before.
    ``headers`` go out with each call, so that gateways, and the simulated provider, can tell whose it is. ``is_ours``
    is asked before each call, at the last moment: a False keeps it back.

    Raises ConfigurationFault or InputInvalid before any call; a fault of ``tasks.errors`` for an answer that cannot be
    used, AnswerMalformed with ``repairs`` set to the number of repairs that were tried in vain; and what the SDK or its
    transport raises for a call that failed; ``gate.KeptBack``, which is no Exception, for a call that was kept back.
    """
    messages = await _filled_in(spec, payload)
    return await converse(
        clients=clients,
        provider=provider,
        spec=spec,
        messages=messages,
        on_progress=on_progress,
        calls=calls,
        headers=headers,
        is_ours=is_ours,
    )


async def converse(
    *,
    clients: Clients,
    provider: ProviderConfig,
    spec: PromptSpec,
    messages: list[Message],
    on_progress: OnProgress | None = None,
    calls: list[CallRecord],
    headers: Mapping[str, str] | None = None,
    is_ours: gate.MaySend | None = None,
) -> Result:
    """Send ``messages`` as they are, repairs included; the rest is as ``run_prompt`` has it.

    The records that ``calls`` already has are counted on.
    """
    gate.may_send.set(is_ours)
    attempt = _Attempt(clients, provider, spec, calls, on_progress, headers or {})
    first = messages
    for repairs in range(spec.max_repairs + 1):
        try:
            done = await attempt.call(messages)
        except Unmendable as broken:
            messages = [*first, *_sent_back(calls[-1].answer, broken.problems)]
            found = broken.problems
        else:
            return Result(done.value, repairs, done.how)
    raise _malformed(found, spec.max_repairs)


async def _filled_in(spec: PromptSpec, payload: Any) -> list[Message]:
    try:
        return await (in_thread if is_large(payload) else off_loop)(render, spec, payload)
    except Exhausted:
        raise InputInvalid(
            f"filling the prompt in takes more than {FULL[0]} steps with this payload; send less, or loop less in it"
        ) from None


def _sent_back(answer: str, found: list[Problem]) -> list[Message]:
    return [{"role": "assistant", "content": answer}, {"role": "user", "content": repair_message(found)}]


def _malformed(found: list[Problem], repairs: int) -> AnswerMalformed:
    return AnswerMalformed(problems=[str(problem) for problem in found], repairs=repairs)


@dataclass(slots=True)
class _Attempt:
    clients: Clients
    provider: ProviderConfig
    spec: PromptSpec
    calls: list[CallRecord]
    on_progress: OnProgress | None
    headers: Mapping[str, str]
    #: Pieces that earlier calls of this attempt brought.
    before: int = 0

    async def call(self, messages: list[Message]) -> Mended:
        """One call and its answer, mended. Raises Unmendable, a fault or the transport's error; records in any case."""
        client = self.clients.get(self.provider)
        body = request_body(self.provider, self.spec, messages)
        draft, how, error = Draft(), [], None
        started = time.monotonic()
        try:
            answer = await ask(client, body, draft, self._progress, self.headers)
            mended = await self._mend(answer.text)
            how = mended.how
            return mended
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.before += draft.chunks
            duration = round((time.monotonic() - started) * 1000)
            self.calls.append(self._record(messages, draft, how, error, started, duration))

    async def _mend(self, text: str) -> Mended:
        schema = self.spec.output_schema
        if schema is None:
            return Mended(text)
        try:
            return await (off_loop if len(text) < LARGE else in_thread)(mend, text, schema)
        except Exhausted:
            raise ConfigurationFault(
                f"the schema takes more than {FULL[0]} steps to check this answer of {len(text)} characters; give it"
                " fewer alternatives (anyOf, oneOf, $ref) within each other"
            ) from None

    def _progress(self, pieces: int) -> None:
        if self.on_progress:
            self.on_progress(self.before + pieces)

    def _record(
        self,
        messages: list[Message],
        draft: Draft,
        how: list[str],
        error: BaseException | None,
        started: float,
        duration_ms: int,
    ) -> CallRecord:
        response = getattr(error, "response", None)
        if draft.http_status is None and response is not None:
            draft.respond(response.status_code, response.headers)
        models = (draft.model, self.spec.model)
        return CallRecord(
            seq=len(self.calls) + 1,
            provider=self.provider.name,
            model=draft.model or self.spec.model,
            messages=messages,
            answer=draft.text,
            finish_reason=draft.finish_reason,
            tool_calls=draft.tool_calls,
            input_tokens=draft.input_tokens,
            output_tokens=draft.output_tokens,
            cost=first_cost(self.provider.base_url, models, draft.input_tokens, draft.output_tokens),
            provider_request_id=draft.request_id,
            started=started,
            duration_ms=duration_ms,
            http_status=draft.http_status,
            error=_name(error),
            mended=how,
        )


def _name(error: BaseException | None) -> str | None:
    """The class name of what ended the call; an answer that could not be mended is the fault it would become."""
    if error is None:
        return None
    return AnswerMalformed.__name__ if isinstance(error, Unmendable) else type(error).__name__
