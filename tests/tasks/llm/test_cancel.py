"""Cancelling a call: the provider notices at once, and the trail keeps what came."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tasks.llm.call import run_prompt
from tasks.llm.provider import Clients
from tasks.llm.request import CallRecord, PromptSpec, ProviderConfig
from tests.chat import chat, chunk, no_response, stream
from tests.provider import Reply, ScriptedProvider

#: Seconds; "at once" with a wide margin for a busy machine. Unnoticed, the connection would stay for ever.
AT_ONCE = 0.5


async def cancelled(provider: ScriptedProvider, spec: PromptSpec, until: Any) -> tuple[list[CallRecord], float]:
    """Start an attempt, cancel it once ``until(progress)`` holds; its calls and when it was cancelled."""
    calls: list[CallRecord] = []
    progress: list[int] = []
    clients = Clients()
    config = ProviderConfig("scripted", provider.base_url)
    task = asyncio.create_task(
        run_prompt(clients=clients, provider=config, spec=spec, payload={}, calls=calls, on_progress=progress.append)
    )
    async with asyncio.timeout(10):
        while not until(progress):
            await asyncio.sleep(0.005)
    at = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # Before the clients are closed: it is the cancel that has to end the connection.
    await asyncio.to_thread(provider.requests[0].wait_closed)
    await clients.aclose()
    return calls, at


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("reply", [no_response("hang"), Reply(end="hang")], ids=["before headers", "after headers"])
def test_waiting_for_the_first_token(provider: ScriptedProvider, streamed: bool, reply: Reply) -> None:
    provider.replies(reply)
    spec = PromptSpec("m", "", "hello", stream=streamed)

    calls, at = asyncio.run(
        cancelled(provider, spec, lambda _: bool(provider.requests and provider.requests[0].answered_at))
    )

    assert provider.requests[0].closed_at - at < AT_ONCE
    assert [(call.error, call.answer, call.input_tokens) for call in calls] == [("CancelledError", "", None)]


def test_inside_a_stream(provider: ScriptedProvider) -> None:
    provider.replies(stream([chunk("one "), chunk("two ")], done=False, end="hang"))

    calls, at = asyncio.run(cancelled(provider, PromptSpec("m", "", "hello"), lambda progress: progress[-1:] == [2]))

    assert provider.requests[0].closed_at - at < AT_ONCE
    (call,) = calls
    assert (call.error, call.answer, call.http_status, call.finish_reason) == ("CancelledError", "one two ", 200, None)


def test_inside_a_repair_keeps_both_calls(provider: ScriptedProvider) -> None:
    provider.script(lambda request, n: chat(request, "no json") if n == 1 else no_response("hang"))
    spec = PromptSpec("m", "", "hello", output_schema={"type": "object"})

    async def run() -> list[CallRecord]:
        calls: list[CallRecord] = []
        clients = Clients()
        config = ProviderConfig("scripted", provider.base_url)
        task = asyncio.create_task(run_prompt(clients=clients, provider=config, spec=spec, payload={}, calls=calls))
        await asyncio.to_thread(provider.wait_for, 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await clients.aclose()
        return calls

    calls = asyncio.run(run())

    assert [(call.seq, call.error) for call in calls] == [(1, "AnswerMalformed"), (2, "CancelledError")]


def test_a_timeout_of_the_engine(provider: ScriptedProvider) -> None:
    provider.replies(stream([chunk("one")], done=False, end="hang"))

    async def run() -> list[CallRecord]:
        calls: list[CallRecord] = []
        clients = Clients()
        config = ProviderConfig("scripted", provider.base_url)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                spec = PromptSpec("m", "", "hello")
                await run_prompt(clients=clients, provider=config, spec=spec, payload={}, calls=calls)
        await asyncio.to_thread(provider.requests[0].wait_closed)
        await clients.aclose()
        return calls

    calls = asyncio.run(run())

    assert [call.error for call in calls] == ["CancelledError"]
    assert calls[0].duration_ms > 0


def test_one_cancelled_call_leaves_the_others_alone(provider: ScriptedProvider) -> None:
    provider.script(lambda request, n: chat(request, request["model"], pieces=10, pause=0.02))

    async def run() -> list[Any]:
        clients = Clients()
        config = ProviderConfig("scripted", provider.base_url)
        tasks = [
            asyncio.create_task(
                run_prompt(
                    clients=clients, provider=config, spec=PromptSpec(f"model-{n}", "", "hi"), payload={}, calls=[]
                )
            )
            for n in range(20)
        ]
        await asyncio.to_thread(provider.wait_for, 20)
        for task in tasks[::2]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await clients.aclose()
        return results

    results = asyncio.run(run())

    assert [result.value for result in results[1::2]] == [f"model-{n}" for n in range(1, 20, 2)]
    assert all(isinstance(result, asyncio.CancelledError) for result in results[::2])
