"""Every fault as the real client sees it, streamed and whole."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import openai
import pytest
from jsonschema import Draft202012Validator

from tasks.demo.faults import FAULTS
from tests.tasks.demo.asking import SCHEMA, ask, new_task
from tests.tasks.demo.conftest import ProviderProcess

pytestmark = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])

STATUSES: list[tuple[str, int, str | None, str]] = [
    ("error_500", 500, None, "The server had an error"),
    ("error_503", 503, None, "overloaded"),
    ("error_503_retry_after", 503, "3", "overloaded"),
    ("error_529_retry_after", 529, "3", "Overloaded"),
    ("html_502", 502, None, "502 Bad Gateway"),
    ("rate_limit_retry_after", 429, "2", "Rate limit reached"),
    ("rate_limit_plain", 429, None, "Rate limit reached"),
    ("auth_failed", 401, None, "Incorrect API key provided: sk-demo"),
    ("quota_exhausted", 429, None, "exceeded your current quota"),
    ("quota_402", 402, None, "Insufficient credits"),
    ("permission_denied", 403, None, "not allowed to sample from the model `simulated-small`"),
    ("model_not_found", 404, None, "`simulated-small` does not exist"),
    ("context_too_long", 400, None, "maximum context length"),
    ("request_too_large", 413, None, "maximum allowed number of bytes"),
    ("request_too_large_429", 429, None, "Request too large"),
    ("content_filter_400", 400, None, "content management policy"),
]
CODES = {
    "rate_limit_retry_after": "rate_limit_exceeded",
    "auth_failed": "invalid_api_key",
    "quota_exhausted": "insufficient_quota",
    "permission_denied": "permission_denied",
    "model_not_found": "model_not_found",
    "context_too_long": "context_length_exceeded",
    "content_filter_400": "content_filter",
}


@pytest.mark.parametrize(("fault", "status", "retry_after", "words"), STATUSES, ids=[row[0] for row in STATUSES])
def test_refusals_carry_status_header_and_words(
    provider: ProviderProcess, stream: bool, fault: str, status: int, retry_after: str | None, words: str
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        ask(provider.url(f"fault/{fault}"), new_task(), stream=stream)
    error = caught.value
    assert error.status_code == status
    assert error.response.headers.get("retry-after") == retry_after
    assert error.response.headers["x-redrive-simulated"] == "1"
    assert error.request_id is not None and error.request_id.startswith("req_")
    assert words in error.response.text
    if fault in CODES:
        assert error.code == CODES[fault]


@pytest.mark.parametrize("fault", ["error_500", "error_503", "html_502", "auth_failed", "quota_exhausted", "length"])
def test_lasting_faults_come_again_each_time(provider: ProviderProcess, stream: bool, fault: str) -> None:
    task = new_task()
    for _ in range(4):
        if fault == "length":
            assert ask(provider.url("fault/length"), task, stream=stream).finish == "length"
        else:
            with pytest.raises(openai.APIStatusError):
                ask(provider.url(f"fault/{fault}"), task, stream=stream)


@pytest.mark.parametrize("fault", ["rate_limit_retry_after", "rate_limit_plain", "rate_limit_date", "rate_limit_ms"])
def test_rate_limits_come_twice_per_task_and_then_all_is_well(
    provider: ProviderProcess, stream: bool, fault: str
) -> None:
    one, other = new_task(), new_task()
    for task in (one, other, one, other):
        with pytest.raises(openai.RateLimitError):
            ask(provider.url(f"fault/{fault}"), task, stream=stream)
    assert [ask(provider.url(f"fault/{fault}"), task, stream=stream).finish for task in (one, other)] == ["stop"] * 2


def test_retry_after_as_a_date_is_no_sooner_than_meant(provider: ProviderProcess, stream: bool) -> None:
    before = datetime.now(UTC)
    with pytest.raises(openai.RateLimitError) as caught:
        ask(provider.url("retry-after/2/fault/rate_limit_date"), new_task(), stream=stream)
    wait = (parsedate_to_datetime(caught.value.response.headers["retry-after"]) - before).total_seconds()
    assert 2.0 <= wait <= 3.5


def test_retry_after_in_milliseconds(provider: ProviderProcess, stream: bool) -> None:
    with pytest.raises(openai.RateLimitError) as caught:
        ask(provider.url("fault/rate_limit_ms"), new_task(), stream=stream)
    assert caught.value.response.headers["retry-after-ms"] == "1500"
    assert "retry-after" not in caught.value.response.headers


def test_the_address_sets_how_often_and_how_long(provider: ProviderProcess, stream: bool) -> None:
    task, url = new_task(), provider.url("times/1/retry-after/7/fault/error_503_retry_after")
    with pytest.raises(openai.InternalServerError) as caught:
        ask(url, task, stream=stream)
    assert caught.value.response.headers["retry-after"] == "7"
    assert ask(url, task, stream=stream).finish == "stop"


def test_reset_is_a_reset_and_not_an_end(provider: ProviderProcess, stream: bool) -> None:
    with pytest.raises(openai.APIConnectionError) as caught:
        ask(provider.url("fault/reset"), new_task(), stream=stream)
    assert type(caught.value.__cause__).__name__ == "ReadError"


def test_stream_cut_breaks_off_in_the_body(provider: ProviderProcess, stream: bool) -> None:
    task = new_task()
    with pytest.raises(openai.APIConnectionError) as caught:
        ask(provider.url("fault/stream_cut"), task, stream=stream)
    assert type(caught.value.__cause__).__name__ == "RemoteProtocolError"
    request, end = provider.events(task)
    assert (request["event"], end["event"], end["status"], end["good"]) == ("request", "cut", 200, False)
    assert end["bytes"] > 300  # A part of the answer had gone out.


def test_no_finish_reason_ends_the_body_well(provider: ProviderProcess, stream: bool) -> None:
    answer = ask(provider.url("fault/no_finish_reason"), new_task(), stream=stream)
    assert answer.finish is None
    assert len(answer.text) > 20


def test_no_answer_ends_when_the_client_gives_up(provider: ProviderProcess, stream: bool) -> None:
    task = new_task()
    with pytest.raises(openai.APITimeoutError):
        ask(provider.url("fault/no_answer"), task, stream=stream, timeout=0.3)
    assert [event["event"] for event in provider.events(task)] == ["request", "closed"]


def test_content_filter_and_length_are_finish_reasons_of_a_cut_text(provider: ProviderProcess, stream: bool) -> None:
    whole = ask(provider.url(), "same", stream=stream).text
    for fault, finish in (("content_filter_finish", "content_filter"), ("length", "length")):
        answer = ask(provider.url(f"fault/{fault}"), "same", stream=stream)
        assert answer.finish == finish
        assert answer.text != whole
        assert whole.startswith(answer.text)


def test_empty_answer_stops_normally(provider: ProviderProcess, stream: bool) -> None:
    answer = ask(provider.url("fault/empty"), new_task(), stream=stream)
    assert (answer.text, answer.finish) == ("", "stop")


@pytest.mark.parametrize(
    ("fault", "body", "content_type"),
    [
        ("empty_200", "", "application/json"),
        ("object_200", "{}", "application/json"),
        ("html_200", "<!DOCTYPE html>", "text/html; charset=utf-8"),
    ],
)
def test_a_200_without_a_usable_body(
    provider: ProviderProcess, stream: bool, fault: str, body: str, content_type: str
) -> None:
    with openai.OpenAI(base_url=provider.url(f"fault/{fault}"), api_key="k", max_retries=0) as client:
        messages: Any = [{"role": "user", "content": "Hello"}]
        raw = client.chat.completions.with_raw_response.create(model="m", messages=messages)
    assert raw.http_response.status_code == 200
    assert raw.http_response.text.startswith(body)
    assert bool(raw.http_response.text) == bool(body)
    assert raw.headers["content-type"] == content_type


@pytest.mark.parametrize(
    ("fault", "code"), [("error_in_200", 503), ("error_in_200_context", "context_length_exceeded")]
)
def test_an_error_inside_a_200(provider: ProviderProcess, stream: bool, fault: str, code: str | int) -> None:
    if stream:
        with pytest.raises(openai.APIError) as caught:
            ask(provider.url(f"fault/{fault}"), new_task())
        assert caught.value.body["code"] == code  # type: ignore[index]
        return
    with openai.OpenAI(base_url=provider.url(f"fault/{fault}"), api_key="k", max_retries=0) as client:
        messages: Any = [{"role": "user", "content": "Hello"}]
        raw = client.chat.completions.with_raw_response.create(model="m", messages=messages)
    assert raw.http_response.status_code == 200
    assert raw.http_response.json()["error"]["code"] == code


def test_schema_answers_fit_and_are_the_same_each_time(provider: ProviderProcess, stream: bool) -> None:
    texts = {ask(provider.url(), "same", stream=stream, schema=SCHEMA).text for _ in range(3)}
    assert len(texts) == 1
    Draft202012Validator(SCHEMA).validate(json.loads(texts.pop()))


def test_a_schema_written_in_the_prompt_is_answered(provider: ProviderProcess, stream: bool) -> None:
    asked = f"Sort this. Answer with JSON that fits this JSON Schema:\n{json.dumps(SCHEMA)}"
    answer = ask(provider.url(), new_task(), stream=stream, content=asked)
    Draft202012Validator(SCHEMA).validate(json.loads(answer.text))


def test_wrong_schema_is_json_against_the_schema(provider: ProviderProcess, stream: bool) -> None:
    task = new_task()
    for _ in range(3):
        value = json.loads(ask(provider.url("fault/wrong_schema"), task, stream=stream, schema=SCHEMA).text)
        assert not Draft202012Validator(SCHEMA).is_valid(value)


def test_not_json_has_nothing_to_mend(provider: ProviderProcess, stream: bool) -> None:
    text = ask(provider.url("fault/not_json"), new_task(), stream=stream, schema=SCHEMA, content="{a} [b]").text
    assert not set("{}[]") & set(text)
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(text)


def test_fenced_json_is_right_within_its_fence(provider: ProviderProcess, stream: bool) -> None:
    text = ask(provider.url("fault/fenced_json"), new_task(), stream=stream, schema=SCHEMA).text
    inside = text.partition("```json\n")[2].partition("\n```")[0]
    Draft202012Validator(SCHEMA).validate(json.loads(inside))
    assert text.startswith("Here is")


def test_repaired_is_wrong_first_and_right_when_asked_again(provider: ProviderProcess, stream: bool) -> None:
    task, url, valid = new_task(), provider.url("fault/repaired"), Draft202012Validator(SCHEMA)
    wrong = ask(url, task, stream=stream, schema=SCHEMA).text
    assert not valid.is_valid(json.loads(wrong))
    turns = ({"role": "assistant", "content": wrong}, {"role": "user", "content": "category: expected one of …"})
    valid.validate(json.loads(ask(url, task, stream=stream, schema=SCHEMA, before=turns).text))


def test_repaired_knows_the_attempt_by_its_header(provider: ProviderProcess, stream: bool) -> None:
    task, url, valid = new_task(), provider.url("fault/repaired"), Draft202012Validator(SCHEMA)
    fits = []
    for attempt in ("11", "11", "12", "12"):
        marks = {"x-redrive-task": task, "x-redrive-attempt": attempt}
        fits.append(valid.is_valid(json.loads(ask(url, task, stream=stream, schema=SCHEMA, headers=marks).text)))
    assert fits == [False, True, False, True]


def test_a_schema_that_nothing_fits_is_refused(provider: ProviderProcess, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError, match="Invalid schema for response_format"):
        ask(provider.url(), new_task(), stream=stream, schema={"type": "string", "enum": [1]})


def test_max_tokens_cuts_the_answer(provider: ProviderProcess, stream: bool) -> None:
    answer = ask(provider.url(), new_task(), stream=stream, max_tokens=5)
    assert answer.finish == "length"
    assert answer.usage is not None and answer.usage.completion_tokens <= 5


def test_an_unknown_fault_is_named(provider: ProviderProcess, stream: bool) -> None:
    with pytest.raises(openai.NotFoundError, match=r"No such fault: 'error_501'\. Known: ok, demo, error_500"):
        ask(provider.url("fault/error_501"), new_task(), stream=stream)


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - {"no_answer"}))
def test_no_fault_is_slow_without_a_delay(provider: ProviderProcess, stream: bool, fault: str) -> None:
    """Each fault ends at once and leaves exactly one request and one end in the log."""
    task, start = new_task(), time.monotonic()
    # What the client makes of it is tested above.
    with suppress(openai.APIError, ValueError, IndexError, TypeError, AttributeError):
        ask(provider.url(f"fault/{fault}"), task, stream=stream, schema=SCHEMA)
    request, end = provider.events(task)
    assert request["event"] == "request"
    assert end["event"] in {"answered", "cut"}
    assert (request["fault"], request["task"], request["call"]) == (fault, task, 1)
    assert time.monotonic() - start < 5
