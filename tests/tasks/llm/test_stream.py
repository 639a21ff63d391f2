"""Answers over HTTP, streamed and not, in every shape that is still an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.chat import EVENT_STREAM, chat, chunk, completion, document, event, stream, usage_chunk
from tests.provider import Reply, ScriptedProvider
from tests.tasks.llm.conftest import Attempt

Run = Callable[..., Attempt]
CHINESE = "工单：客户无法登录 😀，请尽快处理。\u2028“好”"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_plain_answer_and_its_record(provider: ScriptedProvider, attempt: Run, streamed: bool) -> None:
    provider.script(
        lambda request, n: chat(request, "four words of text", headers={**EVENT_STREAM, "x-request-id": "req_1"})
    )

    done = attempt(stream=streamed, system_prompt="Be brief.", temperature=0.5, max_output_tokens=99)

    assert done.value == "four words of text"
    (call,) = done.calls
    assert (call.seq, call.provider, call.model, call.answer) == (1, "scripted", "scripted-1", "four words of text")
    assert (call.input_tokens, call.output_tokens, call.cost) == (12, 5, None)
    assert (call.finish_reason, call.http_status, call.error) == ("stop", 200, None)
    assert call.provider_request_id == "req_1"
    assert 0 <= call.duration_ms < 10_000
    assert call.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Say something."},
    ]
    asked = {"model": "m", "messages": call.messages, "temperature": 0.5, "max_tokens": 99, "stream": streamed}
    assert provider.requests[0].json == asked | ({"stream_options": {"include_usage": True}} if streamed else {})


def test_settings_that_are_not_set_are_not_sent(provider: ScriptedProvider, attempt: Run) -> None:
    attempt(stream=False)

    assert set(provider.requests[0].json) == {"model", "messages", "stream"}


@pytest.mark.parametrize("streamed", [True, False])
def test_chinese_and_emoji_cut_at_every_byte(provider: ScriptedProvider, attempt: Run, streamed: bool) -> None:
    whole = b"".join(chat({"stream": streamed, "stream_options": {"include_usage": True}}, CHINESE).pieces)
    provider.replies(Reply([whole[at : at + 1] for at in range(len(whole))], headers=EVENT_STREAM if streamed else {}))

    done = attempt(stream=streamed)

    assert done.value == CHINESE
    assert done.calls[0].output_tokens == 5


@pytest.mark.parametrize("ends", ["\r\n", "\r", "\n"])
def test_line_ends_comments_and_other_fields(provider: ScriptedProvider, attempt: Run, ends: str) -> None:
    text = ": OPENROUTER PROCESSING\n\n" + "retry: 3000\n\n" + "event: message\nid: 1\n"
    text += event(chunk("one ")).decode() + ":\n\n" + event(chunk("two", "stop")).decode() + "data: [DONE]\n\n"
    body = text.replace("\n", ends).encode()
    provider.replies(Reply([body[at : at + 3] for at in range(0, len(body), 3)], headers=EVENT_STREAM))

    assert attempt().value == "one two"


def test_a_chunk_over_several_data_lines(provider: ScriptedProvider, attempt: Run) -> None:
    pretty = json.dumps(chunk("pretty", "stop"), indent=2)
    provider.replies(stream(["\ndata: ".join(pretty.split("\n"))]))

    assert attempt().value == "pretty"


def test_no_blank_line_between_chunks(provider: ScriptedProvider, attempt: Run) -> None:
    body = b"".join(event(chunk(part, finish)).rstrip() + b"\n" for part, finish in (("a", None), ("b", "stop")))
    provider.replies(Reply([body], headers=EVENT_STREAM))

    assert attempt().value == "ab"


def test_no_done_but_a_finish_reason(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(stream([chunk("all of it"), chunk(finish="stop")], done=False))

    assert attempt().value == "all of it"


@pytest.mark.parametrize("ends", [b"", b"\n", b"\r"])
def test_a_last_event_without_its_blank_line(provider: ScriptedProvider, attempt: Run, ends: bytes) -> None:
    provider.replies(Reply([event(chunk("all of it", "stop")).rstrip() + ends], headers=EVENT_STREAM))

    assert attempt().value == "all of it"


def test_no_usage_leaves_the_counts_open(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(stream([chunk("text", "stop")]))

    done = attempt()

    assert (done.calls[0].input_tokens, done.calls[0].output_tokens, done.calls[0].cost) == (None, None, None)


def test_usage_beside_choices_and_null_usage_before(provider: ScriptedProvider, attempt: Run) -> None:
    first = {**chunk("text"), "usage": None}
    last = {**chunk(finish="stop"), "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}
    provider.replies(stream([first, last]))

    done = attempt()

    assert (done.calls[0].input_tokens, done.calls[0].output_tokens) == (7, 3)


@pytest.mark.parametrize("count", ["12", -1, True, 1.5, None])
def test_counts_that_are_none_are_not_believed(provider: ScriptedProvider, attempt: Run, count: Any) -> None:
    provider.replies(document(completion("text", usage={"prompt_tokens": count, "completion_tokens": 3})))

    done = attempt(stream=False)

    assert (done.calls[0].input_tokens, done.calls[0].output_tokens) == (None, 3)


def test_the_connection_may_break_once_the_finish_reason_came(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(stream([chunk("whole", "stop")], done=False, end="reset"))

    done = attempt()

    assert done.value == "whole"
    assert done.calls[0].error is None


def test_a_server_that_never_ends_its_stream(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(stream([chunk("whole", "stop"), usage_chunk(3, 4)], end="hang"))

    done = attempt()

    assert done.value == "whole"
    assert done.calls[0].duration_ms < 2_000
    provider.requests[0].wait_closed()


def test_a_server_that_says_neither_usage_nor_done(
    provider: ScriptedProvider, attempt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.llm.stream.TAIL_SECONDS", 0.2)
    provider.replies(stream([chunk("whole", "stop")], done=False, end="hang"))

    assert attempt().value == "whole"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_megabyte(provider: ScriptedProvider, attempt: Run, streamed: bool) -> None:
    text = "0123456789abcdef" * 65_536
    provider.script(lambda request, n: chat(request, text, pieces=1_000))

    done = attempt(stream=streamed)

    assert done.value == text
    assert done.calls[0].answer == text


def test_halves_of_an_emoji_in_two_chunks(provider: ScriptedProvider, attempt: Run) -> None:
    body = b'data: {"choices":[{"delta":{"content":"%s"},"finish_reason":%s}]}\n\n'
    provider.replies(Reply([body % (rb"\ud83d", b"null"), body % (rb"\ude00 \udead", b'"stop"')], headers=EVENT_STREAM))

    done = attempt()

    assert done.value == "😀 \ufffd"
    assert done.calls[0].answer.encode("utf-8")


def test_a_server_that_does_not_stream_though_asked(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(document(json.dumps(completion("whole"), indent=2)))

    assert attempt(stream=True).value == "whole"


def test_a_server_that_streams_though_not_asked(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(stream([chunk("a"), chunk("b", "stop")]))

    assert attempt(stream=False).value == "ab"


def test_reasoning_is_progress_and_no_answer(provider: ScriptedProvider, attempt: Run) -> None:
    thoughts = [chunk(reasoning_content="hm"), chunk(reasoning_content="so")]
    provider.replies(stream([chunk("", role="assistant"), *thoughts, chunk("42", "stop")], pause=0.01))

    done = attempt()

    assert done.value == "42"
    assert done.progress[-1] == 3
    assert done.progress == sorted(done.progress)


def test_content_in_parts(provider: ScriptedProvider, attempt: Run) -> None:
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "4"}, {"type": "text", "text": "2"}]
    provider.replies(stream([chunk(parts, "stop")]))

    assert attempt().value == "42"


def test_other_choices_are_not_mixed_in(provider: ScriptedProvider, attempt: Run) -> None:
    body = completion("first")
    body["choices"].append({"index": 1, "message": {"content": "second"}, "finish_reason": "length"})
    provider.replies(document(body))

    assert attempt(stream=False).value == "first"


def test_tool_calls_are_recorded(provider: ScriptedProvider, attempt: Run) -> None:
    start = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": ""}}
    more = [{"index": 0, "function": {"arguments": part}} for part in ('{"id"', ": 7}")]
    events = [
        chunk("text", tool_calls=[start]),
        *(chunk(tool_calls=[call]) for call in more),
        chunk(finish="tool_calls"),
    ]
    provider.replies(stream(events))

    done = attempt()

    assert done.calls[0].tool_calls == [{"id": "call_1", "name": "look_up", "arguments": '{"id": 7}'}]
    assert done.calls[0].finish_reason == "tool_calls"


def test_a_ping_without_choices_is_passed_over(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(stream([{"type": "ping"}, {"choices": None}, chunk("text", "stop")]))

    assert attempt().value == "text"


def test_a_body_that_ends_with_the_connection(provider: ScriptedProvider, attempt: Run) -> None:
    provider.replies(stream([chunk("text", "stop")], framing="eof"))

    assert attempt().value == "text"
