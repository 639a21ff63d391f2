"""Handlers that do what handlers should not: whatever it is, the attempt has an end, and the end can be stored."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.engine import registry
from tasks.engine.context import Context
from tasks.engine.runner import Abort, Running
from tasks.models import Kind
from tests.tasks.engine import bench
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db

Handled = Callable[..., Kind]


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> Handled:
    """Makes a kind that is run by the function given."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))

    def make(function: Callable[[Context], Any], **fields: Any) -> Kind:
        registry.handler("on.the.bench")(function)
        return Kind.objects.create(name="bench", handler="on.the.bench", jitter=0.0, **fields)

    return make


class Odd:
    """Neither JSON nor text."""

    def __str__(self) -> str:
        return "odd\x00thing"


class Silent:
    """Cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("I do not speak")


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


# --- results --------------------------------------------------------------------------------------------------------

RESULTS = {
    "nothing": (None, None),
    "NUL": ({"a\x00b": "c\x00d"}, {"a�b": "c�d"}),
    "lone surrogates": (["\ud800", "x\udfffy"], ["�", "x�y"]),
    "two halves": ("\ud83d\ude00", "\N{GRINNING FACE}"),
    "no numbers": ([float("nan"), float("inf"), 1.5], [None, None, 1.5]),
    "keys of other types": ({7: "a", None: "b", True: "c", 2.5: "d"}, {"7": "a", "null": "b", "true": "c", "2.5": "d"}),
    "objects": ([Odd(), datetime(2026, 1, 2, tzinfo=UTC)], ["odd�thing", "2026-01-02 00:00:00+00:00"]),
    "sets and tuples": (({"one"}, ("two", 3)), [["one"], ["two", 3]]),
    "deep, but not too deep": (nested(300), nested(300)),
}


@pytest.mark.parametrize(("given", "kept"), RESULTS.values(), ids=RESULTS.keys())
def test_a_result_is_stored_as_json(handled: Handled, given: Any, kept: Any) -> None:
    done = bench.attempt(handled(lambda context: given))
    assert (done.outcome, done.task.status, done.task.result) == ("succeeded", "succeeded", kept)


UNSTORABLE = {
    "5 MiB": ("x" * 5 * 1024 * 1024, "at most 4194304 can be stored"),
    "10,000 levels": (nested(10_000), "nested too deeply"),
    "10,000 digits": (10**10_000, "cannot be stored"),
    "an object that cannot be shown": (Silent(), "I do not speak"),
}


@pytest.mark.parametrize(("given", "said"), UNSTORABLE.values(), ids=UNSTORABLE.keys())
def test_a_result_that_cannot_be_stored_is_a_letter(handled: Handled, given: Any, said: str) -> None:
    done = bench.attempt(handled(lambda context: given))
    letter = DeadLetter.objects.get()
    assert (done.task.status, letter.reason, letter.attempts) == ("dead", "unstorable", 1)
    assert said in letter.last_error


def test_a_value_that_holds_itself_is_a_letter(handled: Handled) -> None:
    value: list[Any] = []
    value.append(value)
    bench.attempt(handled(lambda context: value))
    assert DeadLetter.objects.get().reason == "unstorable"


# --- what is raised -------------------------------------------------------------------------------------------------


class Outside(BaseException):
    """Not an Exception: passes all that catch those."""


UNKNOWN, CANCELLED = "AI_UNKNOWN_ERROR", "AI_CANCELLED"
#: Codes that are tried again, and those that are not, as the catalogue has them.
RAISED = [
    (ValueError("no such ticket"), UNKNOWN, "dead"),
    (SystemExit("good bye"), UNKNOWN, "retryable"),
    (KeyboardInterrupt("stop"), CANCELLED, "dead"),
    (GeneratorExit("closed"), CANCELLED, "dead"),
    (StopIteration("exhausted"), UNKNOWN, "retryable"),
    (asyncio.CancelledError("by itself"), CANCELLED, "dead"),
    (Outside("from outside"), UNKNOWN, "retryable"),
    (ExceptionGroup("several", [ValueError("one"), OSError("two")]), UNKNOWN, "retryable"),
]


@pytest.mark.parametrize(("error", "code", "status"), RAISED, ids=[type(error).__name__ for error, *_ in RAISED])
@pytest.mark.parametrize("where", ["loop", "thread"])
def test_whatever_a_handler_raises_is_a_failed_attempt(
    handled: Handled, where: str, error: BaseException, code: str, status: str
) -> None:
    def in_thread(context: Context) -> None:
        raise error

    async def in_loop(context: Context) -> None:
        raise error

    done = bench.attempt(handled(in_loop if where == "loop" else in_thread))
    assert (done.outcome, done.counted, done.error_code, done.task.failures) == ("failed", True, code, 1)
    assert done.task.status == status
    assert type(error).__name__ in done.last_error
    assert str(error.args[0]) in done.last_error


class Mute(Exception):
    """An error that fails to say what it is."""

    def __str__(self) -> str:
        raise OSError("no words")


TEXTS = {
    "NUL and lone surrogates": (RuntimeError("a\x00b\ud800c"), "a�b"),
    "mute": (Mute(), "Mute"),
    "huge": (RuntimeError("x" * 1_000_000), "[cut: "),
    "secrets": (RuntimeError("api_key=sk-proj-abcdefghijklmnop0123456789"), "api_key=[masked]"),
}


@pytest.mark.parametrize(("error", "kept"), TEXTS.values(), ids=TEXTS.keys())
def test_an_error_of_any_text_is_stored(handled: Handled, error: Exception, kept: str) -> None:
    def fail(context: Context) -> None:
        raise error

    done = bench.attempt(handled(fail, max_attempts=1))
    letter = DeadLetter.objects.get()
    assert (done.task.status, letter.reason) == ("dead", "attempts_exhausted")
    assert kept in letter.last_error
    assert len(letter.last_error.encode()) <= 16 * 1024


def test_a_timeout_of_the_work_itself_is_not_ours(handled: Handled) -> None:
    async def impatient(context: Context) -> None:
        raise TimeoutError("the ledger did not answer")

    done = bench.attempt(handled(impatient))
    assert "the ledger did not answer" in done.last_error
    assert "call was aborted" not in done.last_error


# --- time that is up ------------------------------------------------------------------------------------------------


def test_a_handler_in_the_loop_is_aborted_at_its_timeout(handled: Handled) -> None:
    async def slow(context: Context) -> None:
        await asyncio.sleep(60)

    done = bench.attempt(handled(slow, timeout_seconds=0.2))
    assert (done.error_code, done.counted, done.task.status) == ("AI_MODEL_TIMEOUT", True, "retryable")
    assert "no answer within 0.2 s" in done.last_error


async def swallows(context: Context) -> str:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return "too late"
    return "never"


async def turns_into_another(context: Context) -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise RuntimeError("clean-up failed") from None


@pytest.mark.parametrize("function", [swallows, turns_into_another])
def test_what_comes_after_the_timeout_does_not_count(handled: Handled, function: Any) -> None:
    done = bench.attempt(handled(function, timeout_seconds=0.2))
    assert (done.outcome, done.error_code, done.task.result) == ("failed", "AI_MODEL_TIMEOUT", None)


def test_a_thread_keeps_its_slot_until_it_ends_and_its_late_value_is_dropped(handled: Handled) -> None:
    ended = threading.Event()

    def slow(context: Context) -> str:
        time.sleep(1.6)  # the handler outlives its timeout
        ended.set()
        return "late"

    async def look(running: Running) -> None:
        assert running.task is not None
        await asyncio.sleep(0.8)
        assert not running.task.done()
        await asyncio.wait([running.task])
        assert ended.is_set()

    done = bench.attempt(handled(slow, timeout_seconds=0.2), meddle=look)
    assert (done.outcome, done.error_code, done.task.result) == ("failed", "AI_MODEL_TIMEOUT", None)
    assert "would not be stopped; what came after " in done.last_error


# --- aborts ---------------------------------------------------------------------------------------------------------


def abort(*reasons: Abort) -> Callable[[Running], Awaitable[None]]:
    async def meddle(running: Running) -> None:
        while not running.started:
            await asyncio.sleep(0)
        for why in reasons:
            await asyncio.sleep(0.05)
            running.stop(why)

    return meddle


@pytest.mark.parametrize("function", [turns_into_another])
def test_an_attempt_that_is_handed_back_uses_no_budget_whatever_it_raises(handled: Handled, function: Any) -> None:
    done = bench.attempt(handled(function, safe_to_rerun=True), meddle=abort(Abort.DRAINED))
    assert (done.outcome, done.counted, done.error_code) == ("interrupted", False, "")
    assert (done.task.status, done.task.failures) == ("ready", 0)


def test_an_attempt_that_is_cancelled_ends_as_cancelled(handled: Handled) -> None:
    done = bench.attempt(handled(turns_into_another), meddle=abort(Abort.CANCELLED, Abort.DRAINED))
    assert (done.outcome, done.counted, done.task.status) == ("cancelled", False, "cancelled")


def test_a_value_that_was_ready_wins_over_the_abort(handled: Handled) -> None:
    done = bench.attempt(handled(swallows), meddle=abort(Abort.CANCELLED))
    assert (done.outcome, done.task.status, done.task.result) == ("succeeded", "succeeded", "too late")


def test_a_thread_is_waited_for_however_often_it_is_told_to_stop(handled: Handled) -> None:
    """Cancelled by a person, then its timeout passes: its slot is not free before the thread is."""
    ended = threading.Event()

    def slow(context: Context) -> str:
        time.sleep(0.8)  # the handler outlives its timeout
        ended.set()
        return "late"

    async def meddle(running: Running) -> None:
        await abort(Abort.CANCELLED)(running)
        assert running.task is not None
        await asyncio.wait([running.task])
        assert ended.is_set()

    done = bench.attempt(handled(slow, timeout_seconds=0.4), meddle=meddle)
    assert (done.outcome, done.task.status, done.task.result) == ("cancelled", "cancelled", None)


def test_what_a_thawed_process_has_not_begun_is_handed_back_as_such(handled: Handled) -> None:
    """Frozen between its claim and its start. Nothing has happened, so also what may not run twice is ready again."""
    done = bench.attempt(handled(lambda context: "ran", safe_to_rerun=False), held=False)
    assert (done.outcome, done.counted, done.task.status) == ("interrupted", False, "ready")


# --- what is registered ---------------------------------------------------------------------------------------------


def test_a_wrapped_coroutine_function_is_awaited(handled: Handled) -> None:
    async def work(word: str, context: Context) -> str:
        await asyncio.sleep(0)
        return word

    assert bench.attempt(handled(functools.partial(work, "awaited"))).task.result == "awaited"


def test_a_generator_is_refused_when_it_is_registered(handled: Handled) -> None:
    def pieces(context: Context) -> Any:
        yield 1

    with pytest.raises(ValueError, match="it must return its result"):
        handled(pieces)


def test_a_claim_says_by_what_it_is_to_run_whatever_the_kind_says_later(handled: Handled) -> None:
    kind = handled(lambda context: "by the handler of the claim")
    worker, (job,) = bench.claim(kind, [None])
    Kind.objects.update(handler="elsewhere")
    assert job.claimed.handler == "on.the.bench"
    assert asyncio.run(bench.run(job, worker)).result_text == '"by the handler of the claim"'


def test_progress_of_any_sort_can_be_stored(handled: Handled) -> None:
    worker, (job,) = bench.claim(handled(lambda context: None), [None])
    running = Running(job, worker)
    running.progress.tell(step=10**40, text="half\x00way \ud800")
    key = (job.claimed.task_id, job.claimed.attempt_id)
    assert lifecycle.exchange(worker, {key: running.progress.value or {}}) == set()
    assert world.stored(job.claimed.task_id).progress == {"step": 10**40, "text": "half�way �"}
