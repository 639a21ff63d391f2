"""A scripted provider for each test, and one attempt at it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tasks.llm.call import run_prompt
from tasks.llm.provider import Clients
from tasks.llm.request import CallRecord, PromptSpec, ProviderConfig, Result
from tests.provider import ScriptedProvider

SCHEMA = {
    "type": "object",
    "properties": {
        "category": {"enum": ["billing", "bug", "other"]},
        "urgency": {"type": "integer", "minimum": 1, "maximum": 5},
    },
    "required": ["category", "urgency"],
    "additionalProperties": False,
}
GOOD = '{"category": "bug", "urgency": 3}'


@dataclass
class Attempt:
    """What one attempt came to: its value or its error, its calls, what progress was told."""

    value: Any = None
    result: Result | None = None
    error: BaseException | None = None
    calls: list[CallRecord] = field(default_factory=list)
    progress: list[int] = field(default_factory=list)


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as scripted:
        yield scripted


@pytest.fixture
def attempt(provider: ScriptedProvider) -> Callable[..., Attempt]:
    """Run one attempt of a prompt at the provider; keywords are PromptSpec's, ``payload`` apart."""

    def run(*, payload: Any = None, headers: dict[str, str] | None = None, **spec: Any) -> Attempt:
        return asyncio.run(_attempt(provider, payload, headers, spec))

    return run


async def _attempt(provider: ScriptedProvider, payload: Any, headers: Any, spec: dict[str, Any]) -> Attempt:
    done = Attempt()
    clients = Clients()
    try:
        async with asyncio.timeout(20):
            done.result = await run_prompt(
                clients=clients,
                provider=ProviderConfig("scripted", provider.base_url),
                spec=PromptSpec(**{"model": "m", "system_prompt": "", "prompt": "Say something.", **spec}),
                payload=payload,
                on_progress=done.progress.append,
                calls=done.calls,
                headers=headers,
            )
        done.value = done.result.value
    except TimeoutError:
        raise
    except Exception as error:
        done.error = error
    finally:
        await clients.aclose()
    return done
