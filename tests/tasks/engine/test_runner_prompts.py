"""Prompt kinds on the bench: answers that no column takes, and configuration that cannot work."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import ProtectedError

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.engine.catalogue import load_catalogue
from tasks.errors import Failure
from tasks.models import ErrorCode, ErrorRule, Kind, ModelCall, Provider, Task
from tests.chat import chat, completion, document, error
from tests.provider import ScriptedProvider
from tests.tasks.engine import bench
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as scripted:
        yield scripted


@pytest.fixture
def kind(provider: ScriptedProvider) -> Kind:
    """A prompt kind on the scripted provider, not streamed."""
    where = Provider.objects.create(name="scripted", base_url=provider.base_url)
    return world.prompt_kind(provider=where, stream=False)


def test_a_model_that_answers_with_what_no_column_takes(kind: Kind, provider: ScriptedProvider) -> None:
    provider.script(lambda request, n: chat(request, "a\x00b\ud800c"))
    done = bench.attempt(kind, {"text": "hello"})
    assert (done.task.status, done.task.result) == ("succeeded", "a�b�c")
    assert ModelCall.objects.get().answer == "a�b�c"


def test_a_model_that_answers_with_such_json(kind: Kind, provider: ScriptedProvider) -> None:
    kind.output_schema = {"type": "object"}
    kind.save()
    provider.script(lambda request, n: chat(request, '{"k\\u0000": "\\ud83d"}'))
    done = bench.attempt(kind, {"text": "hello"})
    assert (done.task.status, done.task.result) == ("succeeded", {"k�": "�"})


@pytest.mark.parametrize("depth", [100, 100_000])
def test_a_model_that_answers_with_endless_brackets(kind: Kind, provider: ScriptedProvider, depth: int) -> None:
    kind.output_schema, kind.max_repairs = {"type": "array"}, 0
    kind.save()
    text = "[" * depth + "]" * depth
    provider.script(lambda request, n: chat(request, text))
    done = bench.attempt(kind, {"text": "hello"})
    if depth == 100:
        assert (done.outcome, done.task.result) == ("succeeded", json.loads(text))
    else:
        assert (done.outcome, done.error_code) == ("failed", "AI_OUTPUT_MALFORMED")


@pytest.mark.parametrize("count", [10**18, -5, "many", 2**31])
def test_counts_that_cannot_be_are_not_known(kind: Kind, provider: ScriptedProvider, count: Any) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": 5, "total_tokens": 7}
    provider.script(lambda request, n: document(completion("fine", usage=usage)))
    done = bench.attempt(kind, {"text": "hello"})
    call = ModelCall.objects.get()
    assert (done.task.status, done.task.result) == ("succeeded", "fine")
    assert (call.input_tokens, call.output_tokens, done.input_tokens, done.task.output_tokens) == (None, 5, None, 5)
    assert done.task.cost == Decimal(0)


def test_a_last_error_with_nul_and_a_secret(kind: Kind, provider: ScriptedProvider) -> None:
    message = "broken\x00 for key sk-proj-abcdefghijklmnopqrstuvwxyz012345"
    provider.script(lambda request, n: error(500, message))
    done = bench.attempt(kind, {"text": "hello"})
    assert (done.error_code, done.task.status) == ("AI_UPSTREAM_5XX", "retryable")
    assert "broken� for key [masked]" in done.last_error
    assert "sk-proj" not in json.dumps(done.failure)


def test_a_key_that_is_not_set_kills_at_once_and_calls_nobody(kind: Kind, provider: ScriptedProvider) -> None:
    Provider.objects.update(api_key_env="NO_SUCH_KEY_IN_THE_ENVIRONMENT")
    done = bench.attempt(kind, {"text": "hello"})
    letter = DeadLetter.objects.get()
    assert (done.task.status, letter.reason, letter.error_code) == ("dead", "not_retryable", "AI_CONFIG_INVALID")
    assert "NO_SUCH_KEY_IN_THE_ENVIRONMENT" in letter.last_error
    assert provider.requests == []


def test_a_payload_without_what_the_prompt_names_kills_at_once(kind: Kind, provider: ScriptedProvider) -> None:
    done = bench.attempt(kind, {"other": "hello"})
    letter = DeadLetter.objects.get()
    assert (done.task.status, letter.reason, letter.error_code) == ("dead", "not_retryable", "AI_INPUT_INVALID")
    assert "text" in letter.last_error
    assert provider.requests == []


def test_a_prompt_kind_whose_version_is_gone_says_so(kind: Kind) -> None:
    Kind.objects.update(prompt_version=None)
    done = bench.attempt(kind, {"text": "hello"})
    assert (done.task.status, done.error_code) == ("dead", "AI_CONFIG_INVALID")
    assert "has no prompt" in done.last_error


def test_a_running_attempt_goes_by_the_kind_of_its_claim(kind: Kind, provider: ScriptedProvider) -> None:
    """Paused, moved to another provider, given another prompt, its budget cut, while two calls are under way."""
    provider.script(lambda request, n: chat(request, "answered") if "good" in str(request) else error(500, "busy"))
    worker, jobs = bench.claim(kind, [{"text": "good"}, {"text": "bad"}])
    lifecycle.pause_kind(kind.name, by="ana", reason="looking into it")
    kind.provider, kind.prompt, kind.max_attempts = world.provider("elsewhere"), "{{ other }}", 1
    kind.save()
    with pytest.raises(ProtectedError):
        kind.delete()
    Task.objects.update(expires_at=kind.created_at - timedelta(hours=1))
    assert lifecycle.expire() == 0
    ends = [asyncio.run(bench.run(job, worker)) for job in jobs]
    lifecycle.finish(worker, ends)
    good, bad = (world.stored(job.claimed.task_id) for job in jobs)
    assert (good.status, good.result) == ("succeeded", "answered")
    assert (bad.status, bad.failures, bad.error_code) == ("retryable", 1, "AI_UPSTREAM_5XX")
    assert lifecycle.expire() == 1, "what waits again may expire"


def test_what_is_broken_in_the_catalogue_is_skipped_and_the_rest_holds(caplog: pytest.LogCaptureFixture) -> None:
    """Such rows cannot be saved by the admin or loadconfig; SQL can write them."""
    ErrorCode.objects.create(code="SHOP_CLOSED", level="L1", cause="input", retryable=False)
    ErrorCode.objects.create(code="SHOP_BROKEN", level="L9", cause="input")
    ErrorRule.objects.create(code_id="SHOP_CLOSED", message="the shop is closed")
    ErrorRule.objects.create(code_id="SHOP_CLOSED", message="never (closed")
    ErrorRule.objects.create(code_id="SHOP_BROKEN", message="the shop is broken")
    ErrorRule.objects.create(code_id="SHOP_CLOSED", http_status="soon")
    ErrorRule.objects.create(code_id="SHOP_CLOSED")
    catalogue = load_catalogue()
    assert catalogue.classify(Failure(message="Sorry, the shop is closed.")).code == "SHOP_CLOSED"
    assert catalogue.classify(Failure(message="Sorry, the shop is broken.")).code == "AI_UNKNOWN_ERROR"
    assert catalogue.classify(Failure(http_status=503)).code == "AI_OVERLOADED"
    assert "SHOP_BROKEN" in caplog.text
    said = len(caplog.records)
    assert load_catalogue().classify(Failure(message="the shop is closed")).code == "SHOP_CLOSED"
    assert len(caplog.records) == said, "the same is not said again every few seconds"
