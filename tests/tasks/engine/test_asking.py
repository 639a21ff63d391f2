"""``ctx.llm``: what prompt kinds have, a handler has; and nothing is paid for once its attempt is over."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from django.db import connection

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.engine import asking, others, registry
from tasks.engine.context import Context
from tasks.engine.database import DatabaseThread
from tasks.engine.runner import Abort, Running
from tasks.engine.snapshot import Job
from tasks.errors import AnswerMalformed
from tasks.models import Kind, ModelCall, Provider
from tests.chat import chat, chunk, error, no_response, stream
from tests.provider import ScriptedProvider
from tests.tasks.engine import bench
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db

Handled = Callable[..., Kind]
ENDLESS = stream([chunk("", role="assistant"), chunk("a word")], done=False, end="hang")
SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as scripted:
        scripted.script(lambda request, n: chat(request, f"answer {n}"))
        yield scripted


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch, provider: ScriptedProvider) -> Handled:
    """Makes a kind on the scripted provider that is run by the function given."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))

    def make(function: Callable[[Context], Any], **fields: Any) -> Kind:
        registry.handler("on.the.bench")(function)
        where = Provider.objects.create(name="scripted", base_url=provider.base_url)
        told = {"name": "bench", "handler": "on.the.bench", "provider": where, "model": "m-1", "jitter": 0.0}
        return Kind.objects.create(**{**told, **fields})

    return make


async def ask(context: Context) -> Any:
    return await context.llm("hello")


def ask_sync(context: Context) -> Any:
    return context.llm_sync("hello")


BOTH = pytest.mark.parametrize("handler", [ask, ask_sync], ids=["loop", "thread"])


def calls() -> list[tuple[int, str, str]]:
    """(number, answer, error) of each call in the trail."""
    return list(ModelCall.objects.order_by("seq").values_list("seq", "answer", "error"))


@BOTH
def test_an_answer_and_its_place_in_the_trail(handled: Handled, provider: ScriptedProvider, handler: Any) -> None:
    done = bench.attempt(handled(handler))
    assert (done.outcome, done.task.result) == ("succeeded", "answer 1")
    call = ModelCall.objects.get()
    assert (call.seq, call.provider_name, call.model, call.answer) == (1, "scripted", "scripted-1", "answer 1")
    assert (call.messages, call.finish_reason) == ([{"role": "user", "content": "hello"}], "stop")
    assert (done.input_tokens, done.output_tokens, done.task.output_tokens) == (12, 5, 5)
    (request,) = provider.requests
    assert (request.json["model"], request.json["stream"]) == ("m-1", True)


def test_everything_that_can_be_asked(handled: Handled, provider: ScriptedProvider) -> None:
    """What is not said is the kind's own; nothing is a template."""
    turns: Any = [
        {"role": "user", "content": "{{ text }}"},
        {"role": "assistant", "content": "yes?"},
        {"role": "user", "content": "half \ud83d"},
    ]

    async def handler(context: Context) -> Any:
        await context.llm("first")
        return await context.llm(turns, system="Be brief.", model="m-2", temperature=0.5, max_output_tokens=9)

    bench.attempt(handled(handler, stream=False, temperature=0.25, max_output_tokens=70))
    first, second = (request.json for request in provider.requests)
    assert first["messages"] == [{"role": "user", "content": "first"}]
    assert (first["model"], first["stream"], first["temperature"], first["max_tokens"]) == ("m-1", False, 0.25, 70)
    assert (second["model"], second["stream"], second["temperature"], second["max_tokens"]) == ("m-2", False, 0.5, 9)
    assert [turn["content"] for turn in second["messages"]] == ["Be brief.", "{{ text }}", "yes?", "half \ufffd"]
    assert [number for number, *_ in calls()] == [1, 2]


@pytest.mark.parametrize("sync", [False, True], ids=["loop", "thread"])
def test_an_answer_against_its_schema_is_mended_or_sent_back(
    handled: Handled, provider: ScriptedProvider, sync: bool
) -> None:
    answers = ['```json\n{"sum": 1}\n```', '{"sum": "two"}', '{"sum": 2}']
    provider.script(lambda request, n: chat(request, answers[n - 1]))

    async def in_loop(context: Context) -> Any:
        return [await context.llm("one", schema=SCHEMA), await context.llm("two", schema=SCHEMA)]

    def in_thread(context: Context) -> Any:
        return [context.llm_sync("one", schema=SCHEMA), context.llm_sync("two", schema=SCHEMA)]

    done = bench.attempt(handled(in_thread if sync else in_loop))
    assert done.task.result == [{"sum": 1}, {"sum": 2}]
    assert (done.repairs, done.mended) == (1, ["code fence removed"])
    assert [(number, fault) for number, _, fault in calls()] == [(1, ""), (2, "AnswerMalformed"), (3, "")]
    assert "sum: 'two' is not of type 'integer'" in provider.requests[2].json["messages"][-1]["content"]


def test_an_answer_that_is_never_right(handled: Handled, provider: ScriptedProvider) -> None:
    """As for a prompt kind: not asked a second time in another attempt."""
    provider.script(lambda request, n: chat(request, "no JSON"))

    async def handler(context: Context) -> Any:
        return await context.llm("sum up", schema=SCHEMA)

    done = bench.attempt(handled(handler, max_repairs=1))
    assert (done.error_code, done.repairs, done.task.status) == ("AI_OUTPUT_MALFORMED", 1, "dead")
    assert len(provider.requests) == 2


@BOTH
def test_a_rate_limit_puts_the_task_off_and_cools_the_provider(
    handled: Handled, provider: ScriptedProvider, handler: Any
) -> None:
    provider.script(lambda request, n: error(429, "Rate limit reached for requests", retry_after="30"))
    done = bench.attempt(handled(handler))
    assert (done.outcome, done.error_code, done.counted) == ("snoozed", "AI_RATE_LIMITED", False)
    assert done.decision["delay_seconds"] == 30
    assert Provider.objects.get().cooling_reason == "AI_RATE_LIMITED"
    assert ModelCall.objects.get().http_status == 429


@BOTH
def test_a_refused_key_holds_the_provider(handled: Handled, provider: ScriptedProvider, handler: Any) -> None:
    provider.script(lambda request, n: error(401, "Incorrect API key provided"))
    done = bench.attempt(handled(handler))
    assert (done.task.status, done.error_code) == ("dead", "AI_AUTH_FAILED")
    assert Provider.objects.get().hold_code == "AI_AUTH_FAILED"


FAULTS = {
    "cut": (stream([chunk("half")], done=False, end="cut"), "AI_CONNECTION_FAILED"),
    "reset": (no_response("reset"), "AI_CONNECTION_FAILED"),
    "empty": (stream([chunk(finish="stop")]), "AI_OUTPUT_EMPTY"),
    "truncated": (stream([chunk("half"), chunk(finish="length")]), "AI_OUTPUT_TRUNCATED"),
    "filtered": (stream([chunk("half"), chunk(finish="content_filter")]), "AI_CONTENT_FILTERED"),
    "500": (error(500, "on fire"), "AI_UPSTREAM_5XX"),
}


@BOTH
@pytest.mark.parametrize(("reply", "code"), FAULTS.values(), ids=FAULTS.keys())
def test_every_fault_has_its_code(
    handled: Handled, provider: ScriptedProvider, handler: Any, reply: Any, code: str
) -> None:
    provider.replies(reply)
    done = bench.attempt(handled(handler))
    assert (done.outcome, done.error_code) == ("failed", code)
    assert ModelCall.objects.get().error


def test_a_handler_may_do_without_the_model(handled: Handled, provider: ScriptedProvider) -> None:
    provider.script(lambda request, n: chat(request, "no JSON") if n == 1 else chat(request, "fine"))

    async def handler(context: Context) -> Any:
        try:
            return await context.llm("sum up", schema=SCHEMA)
        except AnswerMalformed as fault:
            return [fault.repairs, await context.llm("say fine")]

    done = bench.attempt(handled(handler, max_repairs=0))
    assert (done.outcome, done.task.result) == ("succeeded", [0, "fine"])
    assert [fault for *_, fault in calls()] == ["AnswerMalformed", ""]


def test_progress_of_the_handler_and_of_the_stream_stand_side_by_side(handled: Handled) -> None:
    told: list[Any] = []

    async def handler(context: Context) -> None:
        context.progress(1, 2, "asking")
        await context.llm("one")
        await context.llm("two")
        told.append(dict(context._progress.value or {}))

    bench.attempt(handled(handler))
    assert told == [{"step": 1, "total": 2, "text": "asking", "tokens": 8}]


def test_calls_at_the_same_time_take_turns(handled: Handled, provider: ScriptedProvider) -> None:
    """So that an attempt never takes more of its provider's limit than one place."""
    provider.script(lambda request, n: chat(request, request["messages"][0]["content"], pause=0.02))

    async def handler(context: Context) -> Any:
        return await asyncio.gather(*(context.llm(f"number {n}") for n in range(4)))

    done = bench.attempt(handled(handler))
    assert done.task.result == [f"number {n}" for n in range(4)]
    assert [number for number, *_ in calls()] == [1, 2, 3, 4]
    ends = [(request.at, request.answered_at or 0.0) for request in provider.requests]
    assert all(later[0] >= earlier[1] for earlier, later in pairwise(ends))


def test_a_thread_with_a_loop_of_its_own(handled: Handled) -> None:
    done = bench.attempt(handled(lambda context: asyncio.run(context.llm("hello"))))
    assert (done.outcome, done.task.result) == ("succeeded", "answer 1")


def test_a_thread_that_an_async_handler_started(handled: Handled) -> None:
    async def handler(context: Context) -> Any:
        return await asyncio.to_thread(context.llm_sync, "hello")

    assert bench.attempt(handled(handler)).task.result == "answer 1"


def test_the_waiting_form_is_refused_in_the_event_loop(handled: Handled, provider: ScriptedProvider) -> None:
    async def handler(context: Context) -> Any:
        return context.llm_sync("hello")

    done = bench.attempt(handled(handler))
    assert "ctx.llm_sync would block the event loop; write 'await ctx.llm(…)'" in done.last_error
    assert provider.requests == []


WRONG: dict[str, tuple[Any, dict[str, Any], str, str]] = {
    "empty": (" ", {}, "AI_INPUT_INVALID", "the prompt is empty"),
    "too long": ("x" * 5_000_000, {}, "AI_INPUT_INVALID", "the messages come to 5000000 characters"),
    "no messages": ([{"role": "tool", "content": "x"}], {}, "AI_UNKNOWN_ERROR", "ctx.llm takes a text, or messages"),
    "schema": ("x", {"schema": {"type": "objekt"}}, "AI_CONFIG_INVALID", "The schema given to ctx.llm cannot be used"),
}


@pytest.mark.parametrize(("prompt", "options", "code", "said"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_asked_dies_at_once(
    handled: Handled, provider: ScriptedProvider, prompt: Any, options: Any, code: str, said: str
) -> None:
    async def handler(context: Context) -> Any:
        return await context.llm(prompt, **options)

    done = bench.attempt(handled(handler))
    assert (done.task.status, done.error_code) == ("dead", code)
    assert said in done.last_error
    assert provider.requests == []


@pytest.mark.parametrize("fields", [{"provider": None, "model": ""}, {"model": ""}], ids=["provider", "model"])
def test_a_kind_without_a_provider_or_a_model_says_so(
    handled: Handled, provider: ScriptedProvider, fields: dict[str, Any]
) -> None:
    done = bench.attempt(handled(ask, **fields))
    assert (done.task.status, done.error_code) == ("dead", "AI_CONFIG_INVALID")
    assert ("has no provider" if "provider" in fields else "needs a model") in done.last_error
    assert provider.requests == []


@pytest.mark.parametrize("fields", [{"provider": None}, {"model": ""}], ids=["no provider", "no model"])
def test_a_handler_that_asks_again_at_once_keeps_no_other_from_the_loop(handled: Handled, fields: Any) -> None:
    """What is refused without a call would never let the loop turn, nor its own time run out."""
    most = 200_000
    asked = 0

    async def insistent(context: Context) -> Any:
        nonlocal asked
        while asked < most:
            asked += 1
            try:
                return await context.llm("hello")
            except Exception:  # noqa: S112 - what it is about
                continue

    done = bench.attempt(handled(insistent, timeout_seconds=0.3, **fields))
    assert (done.outcome, done.error_code) == ("failed", "AI_MODEL_TIMEOUT")
    assert asked < most


def test_the_calls_of_an_attempt_are_bounded(
    handled: Handled, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "MOST_CALLS", 3)

    async def handler(context: Context) -> None:
        while True:
            await context.llm("more")

    done = bench.attempt(handled(handler))
    assert (done.task.status, done.error_code, len(provider.requests)) == ("dead", "AI_CONFIG_INVALID", 3)
    assert "an attempt makes at most 3 model calls" in done.last_error


# --- the end of an attempt ends its calls -----------------------------------------------------------------------------


def stop_once_asked(provider: ScriptedProvider, why: Abort, count: int = 1) -> Callable[[Running], Awaitable[None]]:
    async def meddle(running: Running) -> None:
        await asyncio.to_thread(provider.wait_for, count)
        running.stop(why)

    return meddle


@BOTH
@pytest.mark.parametrize(
    ("why", "outcome"),
    [(Abort.CANCELLED, "cancelled"), (Abort.DRAINED, "interrupted"), (Abort.LEASE_LOST, "interrupted")],
)
def test_a_call_is_aborted_with_its_attempt(
    handled: Handled, provider: ScriptedProvider, handler: Any, why: Abort, outcome: str
) -> None:
    provider.replies(ENDLESS)
    done = bench.attempt(handled(handler, safe_to_rerun=True), meddle=stop_once_asked(provider, why))
    assert done.outcome == outcome
    provider.requests[0].wait_closed()
    assert [(number, fault) for number, _, fault in calls()] == [(1, "CancelledError")]


async def deaf(context: Context) -> Any:
    try:
        await context.llm("hello")
    except asyncio.CancelledError:
        return await context.llm("once more")


def deaf_sync(context: Context) -> Any:
    try:
        context.llm_sync("hello")
    except BaseException:
        return context.llm_sync("once more")


async def deaf_for_ever(context: Context) -> Any:
    """Tries again and again, and gives a value in the end."""
    for _ in range(5):
        try:
            await context.llm("hello")
        except BaseException:  # noqa: S112 - what it is about
            continue
    return "done"


@pytest.mark.parametrize("handler", [deaf, deaf_sync, deaf_for_ever])
@pytest.mark.parametrize("by", ["cancel", "timeout"])
def test_a_handler_that_takes_no_notice_pays_for_no_further_call(
    handled: Handled, provider: ScriptedProvider, handler: Any, by: str
) -> None:
    provider.replies(ENDLESS)
    kind = handled(handler, timeout_seconds=3 if by == "timeout" else 60)
    done = bench.attempt(kind, meddle=stop_once_asked(provider, Abort.CANCELLED) if by == "cancel" else None)
    assert len(provider.requests) == 1
    provider.requests[0].wait_closed()
    if by == "timeout":
        assert (done.outcome, done.error_code) == ("failed", "AI_MODEL_TIMEOUT")
    elif handler is not deaf_for_ever:
        assert done.outcome == "cancelled"


def test_a_stream_that_falls_silent(handled: Handled, provider: ScriptedProvider) -> None:
    provider.replies(ENDLESS)
    done = bench.attempt(handled(ask, stall_seconds=0.5, timeout_seconds=60))
    assert (done.outcome, done.error_code) == ("failed", "AI_MODEL_TIMEOUT")
    assert "no token or progress for 0.5 s" in done.last_error
    provider.requests[0].wait_closed()


@pytest.mark.parametrize("way", ["task", "thread"])
def test_what_a_handler_leaves_behind_ends_with_it(handled: Handled, provider: ScriptedProvider, way: str) -> None:
    """The call is in the trail, and what it tries later is refused."""
    provider.replies(ENDLESS)
    kept: list[Any] = []
    refused = threading.Event()

    def persist(context: Context) -> None:
        try:
            context.llm_sync("left behind")
        except BaseException:
            try:
                context.llm_sync("later")
            except asyncio.CancelledError:
                refused.set()

    async def handler(context: Context) -> str:
        if way == "task":
            kept.append(asyncio.create_task(context.llm("left behind")))
        else:
            kept.append(asyncio.create_task(asyncio.to_thread(persist, context)))
        await asyncio.to_thread(provider.wait_for, 1)
        return "done"

    async def until_refused(running: Running) -> None:
        assert await asyncio.to_thread(refused.wait, 10)

    done = bench.attempt(handled(handler), meddle=until_refused if way == "thread" else None)
    assert (done.outcome, done.task.result) == ("succeeded", "done")
    provider.requests[0].wait_closed()
    assert [(number, fault) for number, _, fault in calls()] == [(1, "CancelledError")]
    assert len(provider.requests) == 1


def test_a_task_left_behind_that_takes_no_notice_keeps_no_end_waiting(
    handled: Handled, provider: ScriptedProvider
) -> None:
    provider.replies(ENDLESS)
    kept: list[Any] = []
    over = asyncio.Event()

    async def deaf_to_the_end(context: Context) -> None:
        with suppress(asyncio.CancelledError):
            await context.llm("left behind")
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()

    async def handler(context: Context) -> str:
        kept.append(asyncio.create_task(deaf_to_the_end(context)))
        await asyncio.to_thread(provider.wait_for, 1)
        return "done"

    async def release_it_afterwards(running: Running) -> None:
        assert running.task is not None
        running.task.add_done_callback(lambda task: over.set())

    done = bench.attempt(handled(handler, timeout_seconds=5), meddle=release_it_afterwards)
    assert (done.outcome, done.task.result) == ("succeeded", "done")
    assert [(number, fault) for number, _, fault in calls()] == [(1, "CancelledError")]


def test_a_process_that_lost_its_lease_sends_nothing(handled: Handled, provider: ScriptedProvider) -> None:
    """The gate asks at the last moment, as for a prompt."""

    async def handler(context: Context) -> Any:
        context._asker._is_held = lambda: False
        return await context.llm("hello")

    done = bench.attempt(handled(handler, safe_to_rerun=True))
    assert (done.outcome, done.task.status) == ("interrupted", "ready")
    assert provider.requests == []


# --- another provider -------------------------------------------------------------------------------------------------


@pytest.fixture
def other(transactional_db: None) -> Iterator[ScriptedProvider]:
    """A second provider, named ``other``."""
    with ScriptedProvider() as scripted:
        scripted.script(lambda request, n: chat(request, "from the other"))
        Provider.objects.create(name="other", base_url=scripted.base_url)
        yield scripted


async def ask_other(context: Context) -> Any:
    return await context.llm("hello", provider="other", model="m-9")


def test_another_provider_is_asked_by_its_name(
    other: ScriptedProvider, handled: Handled, provider: ScriptedProvider
) -> None:
    done = bench.attempt(handled(ask_other))
    assert (done.task.result, provider.requests) == ("from the other", [])
    assert ModelCall.objects.get().provider_name == "other"
    assert other.requests[0].json["model"] == "m-9"
    assert "x-redrive-task" not in other.requests[0].headers


def test_its_failure_is_its_own(other: ScriptedProvider, handled: Handled) -> None:
    other.script(lambda request, n: error(401, "Incorrect API key provided"))
    bench.attempt(handled(ask_other))
    held = dict(Provider.objects.values_list("name", "hold_code"))
    assert held == {"other": "AI_AUTH_FAILED", "scripted": ""}


def test_nothing_is_sent_to_one_that_is_on_hold(other: ScriptedProvider, handled: Handled) -> None:
    lifecycle.hold_provider("other", by="ana", reason="too expensive")
    done = bench.attempt(handled(ask_other))
    assert (done.outcome, done.error_code, done.counted) == ("snoozed", "AI_PROVIDER_HELD", False)
    assert done.decision["delay_seconds"] == 10
    assert "the provider 'other' is on hold" in done.last_error
    assert other.requests == []
    assert not DeadLetter.objects.exists()


def test_one_that_cools_is_waited_for(other: ScriptedProvider, handled: Handled) -> None:
    lifecycle.brakes.cool_providers({"other": (45.0, "AI_RATE_LIMITED")})
    done = bench.attempt(handled(ask_other))
    assert (done.outcome, done.error_code) == ("snoozed", "AI_PROVIDER_HELD")
    assert 30 < done.decision["delay_seconds"] <= 45
    assert other.requests == []


async def ask_other_twice(context: Context) -> Any:
    await ask_other(context)
    return await ask_other(context)


def test_another_provider_sees_no_more_at_once_than_it_may(other: ScriptedProvider, handled: Handled) -> None:
    """And no more requests a minute, whoever makes them."""
    other.script(lambda request, n: chat(request, "slow", pause=0.02))
    Provider.objects.filter(name="other").update(max_concurrency=1, requests_per_minute=6)
    worker, jobs = bench.claim(handled(ask_other_twice), [None] * 3)

    async def together() -> list[lifecycle.End]:
        # Each end is stored at once, as it is in a worker.
        return await asyncio.gather(*(run_and_store(worker, job) for job in jobs))

    ends = asyncio.run(together())
    assert [end.outcome for end in ends] == ["succeeded"] * 3
    spans = sorted((request.at, request.answered_at or 0.0) for request in other.requests)
    assert len(spans) == 6
    assert all(later[0] >= earlier[1] for earlier, later in pairwise(spans))
    assert lifecycle.fullness().providers == {"other": lifecycle.Full("requests", 6, 6)}


async def run_and_store(worker: int, job: Job) -> lifecycle.End:
    end = await bench.run(job, worker)
    database = DatabaseThread("ends")
    await database.run(lifecycle.finish, worker, [end])
    await database.close()
    return end


def test_where_it_has_no_room_the_attempt_waits_and_is_put_off(
    other: ScriptedProvider, handled: Handled, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without using an attempt, and without taking the wait for a stall."""
    monkeypatch.setattr(others, "WAIT_SECONDS", 0.6)
    Provider.objects.filter(name="other").update(max_concurrency=1)
    world.prompt_kind(provider=Provider.objects.get(name="other"))
    world.claimed(Kind.objects.get(name="ticket.triage"), world.worker())
    done = bench.attempt(handled(ask_other, stall_seconds=0.5))
    assert (done.outcome, done.error_code, done.counted) == ("snoozed", "AI_PROVIDER_HELD", False)
    assert "the provider 'other' has no room: 1 of at most 1 tasks are under way there" in done.last_error
    assert caplog.text.count("waits: the provider 'other' has no room") == 1, "told once, however often it looks"
    assert other.requests == []


@contextmanager
def database_trouble(second: psycopg.Connection, times: int, what: str) -> Iterator[None]:
    """So many times, taking a place meets this."""
    second.execute(
        f"""CREATE SEQUENCE troubles;
        CREATE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('troubles') <= {times} THEN {what}; END IF; RETURN NEW; END $$;
        CREATE TRIGGER trouble BEFORE INSERT ON tasks_limitplace FOR EACH ROW EXECUTE FUNCTION trouble()"""
    )
    try:
        yield
    finally:
        second.execute("DROP TRIGGER trouble ON tasks_limitplace; DROP FUNCTION trouble; DROP SEQUENCE troubles")


DEADLOCK = "RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'"
CUT = "PERFORM pg_terminate_backend(pg_backend_pid())"


@pytest.mark.parametrize("what", [DEADLOCK, CUT], ids=["busy", "away"])
def test_trouble_with_the_database_while_it_takes_a_place_is_waited_out(
    other: ScriptedProvider, handled: Handled, second_connection: psycopg.Connection, what: str
) -> None:
    Provider.objects.filter(name="other").update(max_concurrency=1)
    with database_trouble(second_connection, 2, what):
        done = bench.attempt(handled(ask_other, timeout_seconds=60))
    assert (done.outcome, done.task.result) == ("succeeded", "from the other")
    assert len(other.requests) == 1


def test_trouble_with_the_database_that_does_not_pass_costs_no_attempt(
    other: ScriptedProvider, handled: Handled, second_connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(others, "WAIT_SECONDS", 0.6)
    Provider.objects.filter(name="other").update(max_concurrency=1)
    with database_trouble(second_connection, 1_000, DEADLOCK):
        done = bench.attempt(handled(ask_other))
    assert (done.outcome, done.error_code, done.counted) == ("snoozed", "AI_PROVIDER_HELD", False)
    assert "the database does not answer" in done.last_error
    assert other.requests == []


def test_trouble_with_the_database_while_it_looks_the_provider_up_is_waited_out(
    other: ScriptedProvider, handled: Handled, second_connection: psycopg.Connection
) -> None:
    async def cut_off_first(context: Context) -> Any:
        session = await context._asker._others._database.run(session_id)
        second_connection.execute("SELECT pg_terminate_backend(%s, 10000)", [session])
        return await ask_other(context)

    assert bench.attempt(handled(cut_off_first)).task.result == "from the other"


def session_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"provider": "nobody", "model": "m"}, "There is no provider 'nobody'."),
        ({"provider": "other"}, "needs a model"),
    ],
    ids=["unknown", "no model"],
)
def test_another_provider_must_exist_and_needs_a_model(
    other: ScriptedProvider, handled: Handled, options: dict[str, str], said: str
) -> None:
    async def handler(context: Context) -> Any:
        return await context.llm("hello", **options)

    done = bench.attempt(handled(handler))
    assert (done.task.status, done.error_code) == ("dead", "AI_CONFIG_INVALID")
    assert said in done.last_error


def test_cost_is_the_sum_of_the_calls(handled: Handled, provider: ScriptedProvider) -> None:
    """Here nothing is known of the price of a server of one's own."""

    async def handler(context: Context) -> None:
        await context.llm("one")
        await context.llm("two")

    done = bench.attempt(handled(handler))
    assert (done.input_tokens, done.output_tokens, done.cost) == (24, 10, None)
    assert world.stored(done.task_id).cost == Decimal(0)
