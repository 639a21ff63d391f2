"""``sync=True``: at once, in the caller's process, and recorded like any other."""

from __future__ import annotations

import os
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, IntegrityError, connection, transaction
from django_q.models import Success
from django_q.models import Task as DjangoQTask
from django_q.tasks import AsyncTask, async_chain, async_task

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.models import Attempt, Task, TaskEvent
from tasks.tally import read
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)

RAN: list[Any] = []


def work(value: int) -> dict[str, int]:
    """Leaves a trace in this process."""
    RAN.append(value)
    return {"value": value, "pid": os.getpid()}


def refuse(value: int) -> None:
    """Fails."""
    RAN.append(value)
    raise LookupError(f"no such customer: {value}, password=hunter2secret")


def collide() -> None:
    """Breaks the transaction that it is called in."""
    Group.objects.create(name="once")
    Group.objects.create(name="once")


def remember(task: DjangoQTask) -> None:
    """A hook."""
    RAN.append((task.name, task.success, task.result, task.attempt_count))


def fail(task: DjangoQTask) -> None:
    """A hook that fails."""
    raise RuntimeError("the hook is broken")


@pytest.fixture(autouse=True)
def forget() -> None:
    RAN.clear()


def events(task: Task) -> list[tuple[str, str, str]]:
    return list(task.events.order_by("seq").values_list("type", "from_status", "to_status"))


def test_it_runs_here_and_is_recorded() -> None:
    call_id = async_task(work, 5, sync=True, group="now", task_name="five", hook=remember)
    value, hooked = RAN
    assert (value, hooked) == (5, ("five", True, {"value": 5, "pid": os.getpid()}, 1))
    task = Task.objects.get()
    assert (task.status, task.result) == ("succeeded", {"value": 5, "pid": os.getpid()})
    assert (task.trace_id, task.tags, task.subject) == (call_id, ["now"], f"{__name__}.work")
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.counted, attempt.worker) == ("succeeded", True, None)
    assert attempt.started_at <= attempt.finished_at
    assert events(task) == [
        ("submitted", "", "ready"),
        ("ran_here", "ready", "running"),
        ("succeeded", "running", "succeeded"),
    ]
    assert not Success.objects.exists()


def test_a_failure_is_raised_and_is_a_dead_letter() -> None:
    with pytest.raises(LookupError, match="no such customer: 5"):
        async_task(refuse, 5, sync=True, hook=remember)
    assert RAN == [5], "once, and as under django-q2 the hook does not hear of it"
    task = Task.objects.get()
    assert (task.status, task.reason, task.failures) == ("dead", "not_retryable", 1)
    letter = DeadLetter.objects.get()
    assert (letter.task_id, letter.state, letter.attempts, letter.error_code) == (
        task.id,
        "open",
        1,
        "AI_UNKNOWN_ERROR",
    )
    assert letter.last_error.startswith("builtins.LookupError: no such customer: 5, password=[masked]")
    assert [kind for kind, *_ in events(task)] == ["submitted", "ran_here", "died"]


def test_a_dead_one_can_be_sent_again() -> None:
    with pytest.raises(LookupError):
        async_task(refuse, 5, sync=True)
    task = Task.objects.get()
    assert lifecycle.reprocess([task.id], actor="ana") == {task.id}
    (claimed,) = lifecycle.claim(world.worker(), 1, ["django_q.call"])
    assert claimed.task_id == task.id


@pytest.mark.parametrize(
    ("function", "args", "raised"),
    [
        ("shop.jobs.gone", (), ValueError),
        (work, (), TypeError),
        ("tests.tasks.engine.broken_module.work", (), Exception),
    ],
    ids=["gone", "arguments", "import"],
)
def test_a_call_that_cannot_be_made_fails_as_under_djangoq2(
    function: Any, args: tuple[Any, ...], raised: type[Exception]
) -> None:
    with pytest.raises(raised):
        async_task(function, *args, sync=True)
    assert DeadLetter.objects.get().error_code == "AI_CONFIG_INVALID"


def test_it_rolls_back_with_its_caller() -> None:
    with pytest.raises(RuntimeError, match="changed my mind"), transaction.atomic():
        async_task(work, 5, sync=True)
        assert Task.objects.count() == 1
        raise RuntimeError("changed my mind")
    assert RAN == [5]
    assert not Task.objects.exists()
    assert not TaskEvent.objects.exists()


def test_it_leaves_its_callers_transaction_as_it_was() -> None:
    """No settings of ours stay behind in it, and what the function wrote commits with it."""
    with transaction.atomic():
        async_task(Group.objects.create, name="made here", sync=True)
        with pytest.raises(LookupError):
            async_task(refuse, 5, sync=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT source FROM pg_settings WHERE name = 'enable_seqscan'")
            assert cursor.fetchone() == ("default",)
    assert Group.objects.filter(name="made here").count() == 1
    assert sorted(Task.objects.values_list("status", flat=True)) == ["dead", "succeeded"]


def test_a_broken_transaction_hides_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """What the function raised tells more than that it could not be recorded."""
    with pytest.raises(IntegrityError), transaction.atomic():
        async_task(collide, sync=True)
    assert "could not be recorded" in caplog.text
    assert not Task.objects.exists()
    with pytest.raises(DatabaseError):
        async_task(collide, sync=True)
    assert DeadLetter.objects.count() == 1, "outside a transaction it is"


def test_a_chain_runs_here_link_by_link() -> None:
    async_chain([(work, (1,)), (work, (2,))], sync=True, group="steps")
    assert RAN == [1, 2]
    with pytest.raises(LookupError):
        async_chain([(work, (1,)), (refuse, (3,)), (work, (4,))], sync=True)
    assert RAN == [1, 2, 1, 3]
    assert sorted(Task.objects.values_list("status", flat=True)) == ["dead", "succeeded", "succeeded", "succeeded"]


def test_a_hook_that_fails_is_noted() -> None:
    AsyncTask(work, 5, sync=True, hook=fail).run()
    event = TaskEvent.objects.get(type="hook_failed")
    assert event.data["error"] == "RuntimeError: the hook is broken"
    assert event.seq == 4


def test_it_counts() -> None:
    async_task(work, 5, sync=True)
    with pytest.raises(LookupError):
        async_task(refuse, 5, sync=True)
    counted = {(metric, label): value for metric, _, label, value in read(["tasks", "attempts"])}
    assert counted["tasks", "succeeded"] == counted["tasks", "dead"] == 1
    assert counted["attempts", "succeeded"] == counted["attempts", "failed AI_UNKNOWN_ERROR"] == 1
