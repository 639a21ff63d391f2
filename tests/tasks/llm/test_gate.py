"""A call is kept back at the last moment: its connection may stand, its headers be sent; never its body."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tasks.llm.call import run_prompt
from tasks.llm.gate import KeptBack
from tasks.llm.provider import Clients
from tasks.llm.request import CallRecord, PromptSpec, ProviderConfig
from tests.chat import chat
from tests.provider import ScriptedProvider


def answers(*said: bool) -> Callable[[], bool]:
    """A gate that gives these answers in turn, the last for ever."""
    left = list(said)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


async def call(provider: ScriptedProvider, gate: Callable[[], bool], calls: list[CallRecord], stream: bool) -> object:
    clients = Clients()
    try:
        result = await run_prompt(
            clients=clients,
            provider=ProviderConfig("p", provider.base_url),
            spec=PromptSpec(model="m", system_prompt="", prompt="hello", stream=stream),
            payload={},
            calls=calls,
            is_ours=gate,
        )
        return result.value
    finally:
        await clients.aclose()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "said",
    [(False,), (True, False), (True, True, False)],
    ids=["before connecting", "before sending", "before the body"],
)
def test_a_call_that_is_not_ours_any_more_is_never_sent(said: tuple[bool, ...], stream: bool) -> None:
    calls: list[CallRecord] = []
    with ScriptedProvider() as provider:
        provider.script(lambda request, n: chat(request, "hi"))
        with pytest.raises(KeptBack):
            asyncio.run(call(provider, answers(*said), calls, stream))
        assert asyncio.run(call(provider, answers(True), calls, stream)) == "hi"
        assert len(provider.requests) == 1
    assert [record.error for record in calls] == ["KeptBack", None]
