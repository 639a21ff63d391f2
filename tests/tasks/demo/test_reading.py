"""What the engine's own client and catalogue make of each fault: the table of faults, up to the error code."""

from __future__ import annotations

import asyncio

import pytest

from tasks.demo.faults import FAULTS
from tasks.errors import classify, retry_after
from tasks.errors.capture import capture
from tasks.llm.call import run_prompt
from tasks.llm.provider import Clients
from tasks.llm.request import CallRecord, PromptSpec, ProviderConfig
from tests.tasks.demo.asking import SCHEMA, new_task
from tests.tasks.demo.conftest import ProviderProcess

#: Fault → error code, seconds of the hint, calls. A code of None: the answer was good in the end.
READ_AS: dict[str, tuple[str | None, float | None, int]] = {
    "ok": (None, None, 1),
    "demo": (None, None, 1),
    "error_500": ("AI_UPSTREAM_5XX", None, 1),
    "error_503": ("AI_OVERLOADED", None, 1),
    "error_503_retry_after": ("AI_OVERLOADED", 3.0, 1),
    "error_529_retry_after": ("AI_OVERLOADED", 3.0, 1),
    "html_502": ("AI_UPSTREAM_5XX", None, 1),
    "reset": ("AI_CONNECTION_FAILED", None, 1),
    "stream_cut": ("AI_CONNECTION_FAILED", None, 1),
    "no_finish_reason": ("AI_CONNECTION_FAILED", None, 1),
    "no_answer": ("AI_MODEL_TIMEOUT", None, 1),
    "rate_limit_retry_after": ("AI_RATE_LIMITED", 2.0, 1),
    "rate_limit_date": ("AI_RATE_LIMITED", 2.5, 1),
    "rate_limit_ms": ("AI_RATE_LIMITED", 1.5, 1),
    "rate_limit_plain": ("AI_RATE_LIMITED", None, 1),
    "auth_failed": ("AI_AUTH_FAILED", None, 1),
    "quota_exhausted": ("AI_QUOTA_EXHAUSTED", None, 1),
    "quota_402": ("AI_QUOTA_EXHAUSTED", None, 1),
    "permission_denied": ("AI_PERMISSION_DENIED", None, 1),
    "model_not_found": ("AI_MODEL_NOT_FOUND", None, 1),
    "context_too_long": ("AI_CONTEXT_TRUNCATED", None, 1),
    "request_too_large": ("AI_INPUT_TOO_LARGE", None, 1),
    "request_too_large_429": ("AI_INPUT_TOO_LARGE", None, 1),
    "content_filter_400": ("AI_CONTENT_FILTERED", None, 1),
    "content_filter_finish": ("AI_CONTENT_FILTERED", None, 1),
    "not_json": ("AI_OUTPUT_MALFORMED", None, 3),
    "wrong_schema": ("AI_OUTPUT_MALFORMED", None, 3),
    "fenced_json": (None, None, 1),
    "repaired": (None, None, 2),
    "length": ("AI_OUTPUT_TRUNCATED", None, 1),
    "empty": ("AI_OUTPUT_EMPTY", None, 1),
    "empty_200": ("AI_OUTPUT_MALFORMED", None, 1),
    "html_200": ("AI_OUTPUT_MALFORMED", None, 1),
    "object_200": ("AI_OUTPUT_MALFORMED", None, 1),
    "error_in_200": ("AI_OVERLOADED", None, 1),
    "error_in_200_context": ("AI_CONTEXT_TRUNCATED", None, 1),
}


async def read(base_url: str, stream: bool) -> tuple[str | None, float | None, int]:
    """One attempt of the engine, cut off after a second or, where an answer is due, after ten."""
    spec = PromptSpec("simulated-small", "", "{{ text }}", SCHEMA, stream=stream)
    calls: list[CallRecord] = []
    clients = Clients()
    try:
        async with asyncio.timeout(1 if "no_answer" in base_url else 10):
            await run_prompt(
                clients=clients,
                provider=ProviderConfig("simulated", base_url),
                spec=spec,
                payload={"text": f"Sort this [task:{new_task()}]"},
                calls=calls,
            )
    except Exception as error:
        failure = capture(error)
        return classify(failure).code, retry_after(failure), len(calls)
    finally:
        await clients.aclose()
    return None, None, len(calls)


def test_the_table_is_whole() -> None:
    assert READ_AS.keys() == FAULTS.keys()


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("fault", READ_AS)
def test_each_fault_is_read_as_its_code(provider: ProviderProcess, fault: str, stream: bool) -> None:
    code, hint, calls = asyncio.run(read(provider.url(f"fault/{fault}"), stream))
    expected_code, expected_hint, expected_calls = READ_AS[fault]
    assert (code, calls) == (expected_code, expected_calls)
    # A date has whole seconds only.
    assert hint == (pytest.approx(expected_hint, abs=1.5) if fault == "rate_limit_date" else expected_hint)
