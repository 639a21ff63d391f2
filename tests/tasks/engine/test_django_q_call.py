"""Running a call of django-q2 as a handler: the function, its hook, its chain."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import psycopg
import pytest
from django.core.signing import Signer
from django.db import connection
from django_q.models import Task as DjangoQTask
from django_q.signals import post_execute, post_execute_in_worker, pre_execute
from django_q.signing import SignedPackage
from django_q.tasks import (
    AsyncTask,
    Chain,
    Iter,
    async_chain,
    async_task,
    count_group,
    fetch,
    fetch_group,
    result,
    result_group,
)

from tasks import lifecycle
from tasks.engine import django_q_call, registry
from tasks.engine.broker import DJANGO_Q_CALL
from tasks.engine.context import Context
from tasks.errors import ConfigurationFault
from tasks.lifecycle import Claimed
from tasks.models import Task, TaskEvent
from tasks.models.ids import uuid7
from tasks.views.history import history
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)

HOOKED: list[DjangoQTask] = []
#: Of a context, what a call of django-q2 never touches.
UNUSED: dict[str, Any] = {"_progress": None, "_log": None, "_asker": None}


def remember(task: DjangoQTask) -> None:
    HOOKED.append(task)


def fail(*args: Any) -> None:
    raise LookupError("no such customer, password=hunter2secret")


@pytest.fixture(autouse=True)
def forget() -> None:
    HOOKED.clear()


def run_next() -> Any:
    """Claim the call that waits, run it as the handler would, and give it up."""
    (claimed,) = lifecycle.claim(world.worker(), 1, [DJANGO_Q_CALL])
    try:
        return django_q_call.run(context_of(claimed))
    finally:
        lifecycle.cancel([claimed.task_id], actor="the test")


def context_of(claimed: Claimed) -> Context:
    """What its handler is given."""
    return Context(json.loads(claimed.payload_text), claimed, **UNUSED)


def run(payload: Any) -> Any:
    """Run a payload that nobody sent."""
    unused = dict.fromkeys(Claimed._fields)
    return django_q_call.run(Context(payload, Claimed(**{**unused, "task_id": uuid7(), "cycle": 1}), **UNUSED))


def test_the_handler_is_registered() -> None:
    found = registry.find("django_q.call")
    assert found is not None
    assert not found.is_async, "it blocks, so it runs in a thread"


@pytest.mark.parametrize("func", ["math.pow", math.pow])
def test_the_function_runs_with_its_arguments(func: Any) -> None:
    async_task(func, 2, 3)
    assert run_next() == 8


def test_keyword_arguments() -> None:
    async_task("builtins.sorted", [1, 3, 2], reverse=True)
    assert run_next() == [3, 2, 1]


def test_the_hook_gets_djangoq2s_task() -> None:
    call_id = async_task("math.sqrt", 16, hook=remember, group="roots", task_name="root")
    run_next()
    (told,) = HOOKED
    assert (told.id, told.name, told.func, told.group) == (call_id, "root", "math.sqrt", "roots")
    assert (told.args, told.result, told.success) == ((16,), 4.0, True)
    assert told.stopped >= told.started
    assert not DjangoQTask.objects.exists(), "the record is our attempt"


def test_a_failing_hook_is_noted_and_the_call_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    async_task("math.sqrt", 16, hook=f"{__name__}.fail")
    assert run_next() == 4.0
    assert "no such customer" in caplog.text
    event = TaskEvent.objects.get(type="hook_failed")
    assert event.attempt_id is not None
    assert event.data == {"hook": f"{__name__}.fail", "error": "LookupError: no such customer, password=[masked]"}
    assert "LookupError: no such customer" in history(Task.objects.get()).lines[1].details


@pytest.mark.parametrize("hook", ["shop.jobs.gone", "tests.tasks.engine.broken_module.hook"])
def test_a_hook_that_is_not_there_is_noted(hook: str) -> None:
    async_task("math.sqrt", 16, hook=hook)
    assert run_next() == 4.0
    assert hook in TaskEvent.objects.get(type="hook_failed").data["error"]


def test_what_the_function_raises_is_the_failure_of_the_attempt() -> None:
    """Its hook hears of it, as under django-q2."""
    async_task(fail, hook=remember)
    with pytest.raises(LookupError, match="no such customer"):
        run_next()
    (told,) = HOOKED
    assert (told.success, told.attempt_count) == (False, 1)
    assert told.result.startswith("no such customer, password=hunter2secret : Traceback")


def test_a_call_that_cannot_be_made_tells_its_hook_too() -> None:
    async_task("shop.jobs.gone", hook=remember)
    with pytest.raises(ConfigurationFault):
        run_next()
    assert [told.success for told in HOOKED] == [False]


def test_a_chain_goes_on_call_by_call() -> None:
    async_chain([("math.sqrt", (16,)), ("math.pow", (2, 5)), ("math.floor", (2.5,))], group="steps")
    results = [run_next() for _ in range(3)]
    assert results == [4.0, 32.0, 2]
    assert Task.objects.count() == 3
    assert all(task.tags == ["steps"] for task in Task.objects.all())


def test_the_next_of_a_chain_is_sent_once() -> None:
    """A call whose end is lost runs again: what it sent must not be there twice."""
    async_chain([("math.sqrt", (16,)), ("math.pow", (2, 5), {})])
    (claimed,) = lifecycle.claim(world.worker(), 1, [DJANGO_Q_CALL])
    assert [django_q_call.run(context_of(claimed)) for _ in range(3)] == [4.0] * 3
    assert Task.objects.count() == 2
    assert run_next() == 32.0


def cut(value: int) -> int:
    """Ends the session that it runs on, as an administrator may at any moment."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (own,) = cursor.fetchone()
    params = connection.get_connection_params()
    with psycopg.connect(**{name: params[name] for name in ("host", "port", "user", "password", "dbname")}) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [own])
    return value


def test_a_lost_connection_keeps_no_chain_from_going_on() -> None:
    """Giving up would have the function run again."""
    async_chain([(cut, (16,)), ("math.pow", (2, 5))])
    (claimed,) = lifecycle.claim(world.worker(), 1, [DJANGO_Q_CALL])
    assert django_q_call.run(context_of(claimed)) == 16
    assert run_next() == 32.0


def cancel_all() -> str:
    lifecycle.cancel([task.pk for task in Task.objects.all()], actor="ines")
    return "done all the same"


def test_a_chain_ends_with_a_call_that_is_cancelled_while_it_runs() -> None:
    async_chain([(cancel_all,), ("math.sqrt", (16,))])
    assert run_next() == "done all the same"
    assert Task.objects.count() == 1
    assert TaskEvent.objects.filter(type="chain_ended").count() == 1


def test_a_row_that_somebody_holds_for_a_while_is_waited_for(second_connection: psycopg.Connection) -> None:
    """Longer than one try. Giving up would have the function run again."""
    async_chain([("math.sqrt", (16,)), ("math.pow", (2, 5))])
    (claimed,) = lifecycle.claim(world.worker(), 1, [DJANGO_Q_CALL])
    tries: list[str] = []

    def let_go(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if "cancel_requested_at IS NULL FROM tasks_task" in sql:
            tries.append(sql)
            if len(tries) == 2:
                second_connection.execute("COMMIT")
        return execute(sql, *rest)

    second_connection.execute("BEGIN")
    second_connection.execute("SELECT 1 FROM tasks_task FOR UPDATE")
    with connection.execute_wrapper(let_go):
        assert django_q_call.run(context_of(claimed)) == 4.0
    assert len(tries) == 2
    assert Task.objects.count() == 2


def test_a_call_whose_process_was_declared_lost_sends_nothing_more() -> None:
    """A person decides what became of it; a reprocess sends what follows."""
    async_chain([("math.sqrt", (16,)), ("math.pow", (2, 5))])
    (claimed,) = lifecycle.claim(world.worker(), 1, [DJANGO_Q_CALL])
    world.age("tasks_workerprocess", "lease_until", 3_600)
    lifecycle.mark_lost(leases_count=True)
    assert lifecycle.rescue() == 1
    assert django_q_call.run(context_of(claimed)) == 4.0
    assert Task.objects.count() == 1


def test_a_next_call_that_cannot_be_sent_is_told() -> None:
    async_chain([("math.sqrt", (16,)), ("math.pow", 5)])
    with pytest.raises(ConfigurationFault, match=r"the next call of its chain cannot be sent: TypeError"):
        run_next()


def test_a_chain_stops_at_a_failure() -> None:
    async_chain([(fail,), ("math.sqrt", (16,))])
    with pytest.raises(LookupError):
        run_next()
    assert Task.objects.count() == 1


def test_signals_are_sent_around_the_call() -> None:
    seen: list[tuple[str, Any]] = []

    def before(sender: str, func: Any, task: dict[str, Any], **_: Any) -> None:
        seen.append(("before", func))

    def after(sender: str, task: dict[str, Any], **_: Any) -> None:
        seen.append(("after", task["result"]))

    pre_execute.connect(before)
    post_execute.connect(after)
    try:
        async_task("math.sqrt", 16)
        run_next()
    finally:
        pre_execute.disconnect(before)
        post_execute.disconnect(after)
    assert seen == [("before", math.sqrt), ("after", 4.0)]


def test_receivers_that_fail_after_the_call_do_not_fail_it(caplog: pytest.LogCaptureFixture) -> None:
    """The work is done: it must not be done again for that."""

    def stumble(sender: str, **_: Any) -> None:
        raise RuntimeError("the receiver stumbled")

    signals = (post_execute_in_worker, post_execute)
    for signal in signals:
        signal.connect(stumble)
    try:
        async_task("math.sqrt", 16)
        assert run_next() == 4.0
    finally:
        for signal in signals:
            signal.disconnect(stumble)
    assert caplog.text.count("the receiver stumbled") >= 2


def test_a_package_signed_with_another_key_is_not_unpacked() -> None:
    async_task("math.sqrt", 16)
    package = Task.objects.get().payload["package"]
    forged = Signer(key="another key").sign(package.rpartition(":")[0])
    for payload in ({"package": forged}, {}):
        with pytest.raises(ConfigurationFault, match="another SECRET_KEY"):
            run(payload)


@pytest.mark.parametrize("payload", [None, [], "text", 1], ids=repr)
def test_a_payload_that_is_no_call(payload: Any) -> None:
    with pytest.raises(ConfigurationFault, match="no call of django-q2"):
        run(payload)


@pytest.mark.parametrize("package", [[], {"func": "math.sqrt"}, None], ids=repr)
def test_a_package_that_holds_no_call(package: Any) -> None:
    with pytest.raises(ConfigurationFault, match="cannot be unpacked"):
        run({"package": SignedPackage.dumps(package)})


class Odd(Exception):
    """Can be pickled and not unpickled: a usual slip of exceptions with arguments of their own."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)


def test_arguments_that_cannot_be_unpacked_die_with_the_reason() -> None:
    async_task("math.sqrt", Odd(1, "x"))
    with pytest.raises(ConfigurationFault, match=r"cannot be unpacked: TypeError: .*text"):
        run_next()


def test_a_function_that_does_not_exist() -> None:
    async_task("shop.jobs.gone", 1)
    with pytest.raises(ConfigurationFault, match=r"shop\.jobs\.gone"):
        run_next()


def test_a_function_whose_module_does_not_import() -> None:
    async_task("tests.tasks.engine.broken_module.work", 1)
    with pytest.raises(ConfigurationFault, match=r"cannot be imported: .*the licence ran out"):
        run_next()


def two(a: int, b: int) -> int:
    """Takes two."""
    return a + b


@wraps(two)
def one(a: int) -> int:
    """Looks as if it took two, and takes one."""
    return two(a, 10)


@pytest.mark.parametrize(("args", "kwargs"), [((1,), {}), ((1, 2, 3), {}), ((1,), {"c": 2})], ids=repr)
def test_arguments_that_do_not_fit(args: tuple[int, ...], kwargs: dict[str, int]) -> None:
    async_task(two, *args, **kwargs)
    with pytest.raises(ConfigurationFault, match=r"test_django_q_call\.two' cannot be called with these arguments: "):
        run_next()


def test_what_a_decorator_takes_counts() -> None:
    async_task(f"{__name__}.one", 5)
    assert run_next() == 15


async def later(value: int) -> int:
    """A coroutine function."""
    return value + 1


def test_a_coroutine_is_run_to_its_end() -> None:
    async_task(later, 1, hook=remember)
    assert run_next() == 2
    assert HOOKED[0].result == 2


def test_a_value_too_large_to_be_stored_does_not_undo_the_work() -> None:
    async_task("builtins.bytearray.ljust", bytearray(), 5_000_000)
    assert run_next().startswith("The value was not kept. The result has ")


def test_options_without_a_meaning_here_harm_nobody() -> None:
    options = {"timeout": 1, "save": False, "cached": 60, "ack_failure": True, "cluster": "slow", "iter_count": 3}
    async_task(two, 1, 2, q_options={**options, "task_name": "sum", "group": "sums", "hook": remember})
    assert run_next() == 3
    task = Task.objects.get()
    assert (task.payload["name"], task.payload["cluster"], task.tags) == ("sum", "slow", ["sums"])
    assert HOOKED[0].name == "sum"


def test_the_classes_of_djangoq2() -> None:
    call = AsyncTask(two, 1, 2, group="sums")
    chain = Chain()
    chain.append(two, 3, 4)
    chain.append(two, 5, b=6)
    several = Iter(two, args=[(1, 1), (2, 2)])
    several.append(3, 3)
    assert (call.run(), chain.run(), several.run()) == (call.id, chain.group, several.id)
    results = [run_next() for _ in range(6)]
    assert sorted(results) == [2, 3, 4, 6, 7, 11]
    assert sorted(tag for task in Task.objects.all() for tag in task.tags) == sorted(
        ["sums", *[chain.group] * 2, *[several.id] * 3]
    )


@pytest.mark.parametrize(
    "read",
    [
        lambda call: result(call.id),
        lambda call: result(call.id, wait=-1, cached=True),
        lambda call: fetch("a name"),
        lambda call: call.result(wait=-1),
        lambda call: call.fetch_group(count=3),
        lambda call: Chain(["math.sqrt"], group="g").current() or count_group("g"),
        lambda call: result_group("g", count=2),
        lambda call: fetch_group("g", cached=True),
    ],
    ids=["result", "cached", "fetch", "class", "group of class", "count", "result group", "cached group"],
)
def test_results_are_refused_in_words_and_never_waited_for(read: Callable[[AsyncTask], Any]) -> None:
    """An answer would say for ever that nothing has ended yet; a wait would have no end."""
    call = AsyncTask(two, 1, 2, group="g")
    call.run()
    with pytest.raises(NotImplementedError, match=r"Task\.objects\.get\(trace_id=ID\)"):
        read(call)
