"""Addresses and calls taken apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tasks.demo.chat import Address, NotAsked, count_tokens, parse_address, parse_call


def call(*messages: dict[str, Any], headers: dict[str, str] | None = None, **options: Any) -> Any:
    """A call with these messages."""
    return parse_call(headers or {}, json.dumps({"messages": messages, **options}).encode())


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("/v1/models", Address("models")),
        ("/fault/reset/v1/chat/completions?x=1", Address("chat/completions", fault="reset")),
        (
            "/delay/500-3000/times/2/retry-after/7/chunks/300/fault/error_500/v1/models",
            Address("models", "error_500", (0.5, 3.0), 2, "7", 300),
        ),
        (
            "/retry-after/Wed%2C%2021%20Oct/delay/0/v1/models",
            Address("models", delay=(0.0, 0.0), retry_after="Wed, 21 Oct"),
        ),
    ],
)
def test_options_stand_in_pairs_before_the_version(target: str, address: Address) -> None:
    assert parse_address(target) == address


@pytest.mark.parametrize("target", ["/", "/models", "/fault/v1/x", "/times/often/v1/x", "/mood/good/v1/x"])
def test_other_addresses_are_refused(target: str) -> None:
    with pytest.raises(NotAsked) as caught:
        parse_address(target)
    assert caught.value.status == 404


def test_headers_say_more_than_the_mark_in_the_text() -> None:
    message = {"role": "user", "content": "Look at this [task:from-text]"}
    marked = call(message)
    assert (marked.task, marked.cycle, marked.attempt) == ("from-text", 1, "")
    headers = {"x-redrive-task": "t", "x-redrive-cycle": "3", "x-redrive-attempt": "9"}
    told = call(message, headers=headers)
    assert (told.task, told.cycle, told.attempt) == ("t", 3, "9")
    assert call(message, headers={"x-redrive-cycle": "none"}).cycle == 1


def test_without_a_mark_the_messages_tell_tasks_apart() -> None:
    one, same, other = (call({"role": "user", "content": text}) for text in ("one", "one", "two"))
    assert one.task == same.task != other.task
    assert one.task.startswith("sha256:")


def test_the_seed_is_of_the_question_and_not_of_the_turns_after_it() -> None:
    system, question = {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why?"}
    first = call(system, question)
    again = call(system, question, {"role": "assistant", "content": "{"}, {"role": "user", "content": "No, JSON."})
    assert first.prompt == again.prompt == "Why?"
    assert first.seed == again.seed
    assert (first.asked_again, again.asked_again) == (False, True)


def test_parts_of_a_message_are_its_text() -> None:
    parts = [{"type": "text", "text": "One"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "two"}]
    assert call({"role": "user", "content": parts}).prompt.split() == ["One", "two"]


def test_what_else_the_body_says() -> None:
    message = {"role": "user", "content": "Hi"}
    full = call(message, model="m", stream=True, stream_options={"include_usage": True}, max_completion_tokens=9)
    assert (full.model, full.stream, full.include_usage, full.max_tokens) == ("m", True, True, 9)
    bare = call(message, stream="yes", stream_options=[], max_tokens=-1, response_format="json")
    assert (bare.stream, bare.include_usage, bare.max_tokens, bare.schema) == (False, False, None, None)
    assert call(message, response_format={"type": "json_object"}).wants_json
    with pytest.raises(NotAsked, match=r"response_format\.json_schema"):
        call(message, response_format={"type": "json_schema"})


def test_tokens_are_counted_as_a_tokenizer_would_about() -> None:
    assert [count_tokens(text) for text in ("", "word", "twelve chars", "你好")] == [0, 1, 3, 2]
