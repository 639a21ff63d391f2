"""What a lying provider may make a process take in: never more than is useful."""

from __future__ import annotations

import asyncio
import gzip
import sys

import pytest

from tasks.errors import AnswerMalformed, classify
from tasks.errors.failure import Failure
from tasks.llm.call import run_prompt
from tasks.llm.events import LINE_BYTES, EventReader
from tasks.llm.provider import Clients
from tasks.llm.request import CallRecord, PromptSpec, ProviderConfig
from tests.chat import EVENT_STREAM, chunk, completion, document, event
from tests.provider import Reply, ScriptedProvider

MIB = 1024 * 1024


def call(reply: Reply, *, stream: bool) -> BaseException:
    """What a call that is answered so raises."""
    calls: list[CallRecord] = []

    async def run(base_url: str) -> BaseException:
        clients = Clients()
        try:
            await run_prompt(
                clients=clients,
                provider=ProviderConfig("p", base_url),
                spec=PromptSpec(model="m", system_prompt="", prompt="hello", stream=stream),
                payload={},
                calls=calls,
            )
        except Exception as error:
            return error
        finally:
            await clients.aclose()
        raise AssertionError("the call went well")

    with ScriptedProvider() as provider:
        provider.replies(reply)
        return asyncio.run(run(provider.base_url))


def code(error: BaseException) -> str:
    return classify(Failure.from_exception(error)).code


@pytest.mark.parametrize("field", ["content", "refusal", "arguments"])
def test_an_endless_stream_ends_at_a_bound(field: str) -> None:
    text = "x" * (64 * 1024)
    tool = {"index": 0, "function": {"arguments": text}}
    piece = {"tool_calls": [tool]} if field == "arguments" else {field: text}
    error = call(Reply([event(chunk(**piece))] * 200, headers=EVENT_STREAM), stream=True)
    assert isinstance(error, AnswerMalformed)
    assert "longer than" in str(error)


@pytest.mark.parametrize("stream", [True, False])
def test_a_document_that_never_ends_is_not_held(stream: bool) -> None:
    error = call(Reply([b"x" * MIB] * 64, headers={"content-type": "text/plain"}), stream=stream)
    assert isinstance(error, AnswerMalformed)
    assert "larger than" in str(error)


def test_a_compressed_answer_is_refused_unread() -> None:
    bomb = gzip.compress(b"\0" * (64 * MIB))
    error = call(document(bomb, headers={"content-encoding": "gzip"}), stream=False)
    assert code(error) == "AI_OUTPUT_MALFORMED"


@pytest.mark.parametrize(("status", "named"), [(500, "AI_UPSTREAM_5XX"), (401, "AI_AUTH_FAILED")])
def test_a_compressed_error_is_still_that_error(status: int, named: str) -> None:
    bomb = gzip.compress(b"\0" * (64 * MIB))
    error = call(document(bomb, status=status, headers={"content-encoding": "gzip"}), stream=False)
    assert code(error) == named


def test_a_call_of_endless_tools_ends() -> None:
    tools = [event(chunk(tool_calls=[{"index": number}])) for number in range(300)]
    error = call(Reply(tools, headers=EVENT_STREAM), stream=True)
    assert "calls more than 256 tools" in str(error)


def test_lines_that_are_gathered_count_with_what_they_take() -> None:
    reader = EventReader()
    list(reader.feed(b"data: ab\n" * 10_000))
    assert reader.held >= 10_000 * (2 + LINE_BYTES)
    assert sys.getsizeof(reader._data) + sum(map(sys.getsizeof, reader._data)) < 2 * reader.held


def test_the_body_of_an_error_is_cut() -> None:
    error = call(Reply([b"x" * MIB] * 32, status=500, headers={"content-type": "text/plain"}), stream=False)
    assert code(error) == "AI_UPSTREAM_5XX"
    assert len(Failure.from_exception(error).last_error) < 20_000


def test_a_redirect_is_not_followed() -> None:
    with ScriptedProvider() as elsewhere:
        elsewhere.script(lambda request, n: document(completion("stolen")))
        error = call(Reply(status=307, headers={"location": f"{elsewhere.base_url}/chat/completions"}), stream=False)
        assert elsewhere.requests == []
    assert code(error) == "AI_CONFIG_INVALID"
