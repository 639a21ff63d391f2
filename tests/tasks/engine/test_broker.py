"""django-q2's ``async_task`` and ``Schedule`` on our queue."""

from __future__ import annotations

import logging
import math
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone
from django_q.models import OrmQ
from django_q.signing import SignedPackage
from django_q.tasks import async_task

from tasks.engine.broker import DJANGO_Q_CALL, TaskBroker, described
from tasks.lifecycle import SubmitError
from tasks.models import Kind, Task, TaskEvent
from tasks.states import Status

pytestmark = pytest.mark.django_db(transaction=True)


def test_async_task_becomes_a_task() -> None:
    call_id = async_task("math.pow", 2, 3, hook="builtins.print", group="powers", task_name="two-cubed")
    task = Task.objects.get()
    assert (task.kind_id, task.status, task.subject) == (DJANGO_Q_CALL, Status.READY, "math.pow")
    assert task.trace_id == call_id
    assert task.tags == ["powers"]
    assert task.payload["name"] == "two-cubed"
    package = SignedPackage.loads(task.payload["package"])
    assert (package["func"], package["args"], package["hook"]) == ("math.pow", (2, 3), "builtins.print")
    assert not OrmQ.objects.exists()


def test_a_function_object_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "django-q")
    async_task(timezone.now)
    async_task(math.sqrt, 4)
    names = Task.objects.order_by("id").values_list("payload__func", flat=True)
    assert list(names) == ["django.utils.timezone.now", "math.sqrt"]


def test_odd_names_and_groups_are_taken() -> None:
    async_task("math.sqrt", 4, group="a\x00b", task_name="\ud800")
    async_task("math.sqrt", 4, group=17)
    async_task("math.sqrt", 4, group="g" * 300)
    first, second, third = Task.objects.order_by("id")
    assert (first.tags, first.payload["name"]) == (["a\ufffdb"], "\ufffd")
    assert (second.tags, third.tags, third.payload["group"]) == (["17"], [], "g" * 300)


def test_the_kind_has_no_timeout_of_its_own() -> None:
    """A function in a thread cannot be stopped: past a timeout it would be done, called a failure, and run again."""
    async_task("math.sqrt", 4)
    assert Kind.objects.get(name=DJANGO_Q_CALL).timeout_seconds == 86_400


def test_the_kind_is_made_once_and_then_belongs_to_people() -> None:
    async_task("math.sqrt", 4)
    kind = Kind.objects.get(name=DJANGO_Q_CALL)
    assert kind.handler == DJANGO_Q_CALL
    assert kind.reruns_safely is False
    kind.safe_to_rerun, kind.max_attempts = True, 7
    kind.save()
    async_task("math.sqrt", 9)
    kind.refresh_from_db()
    assert (kind.safe_to_rerun, kind.max_attempts, kind.tasks.count()) == (True, 7, 2)


def test_a_rolled_back_caller_leaves_nothing() -> None:
    with pytest.raises(RuntimeError, match="changed my mind"), transaction.atomic():
        async_task("math.sqrt", 4)
        raise RuntimeError("changed my mind")
    assert not Task.objects.exists()
    assert not TaskEvent.objects.exists()


def test_enqueue_keeps_the_callers_connection_and_transaction(
    second_connection: psycopg.Connection[tuple[int]],
) -> None:
    def seen_outside() -> int:
        row = second_connection.execute("SELECT count(*) FROM tasks_task").fetchone()
        assert row is not None
        return row[0]

    with transaction.atomic():
        socket = connection.connection
        async_task("math.sqrt", 4)
        assert connection.connection is socket
        assert connection.in_atomic_block
        assert seen_outside() == 0
    assert seen_outside() == 1


def test_a_package_above_the_size_of_a_payload_is_refused() -> None:
    with pytest.raises(SubmitError, match=r"1 MiB|1048576"):
        async_task("builtins.len", "x" * 2_000_000)
    assert not Task.objects.exists()


def test_counts_and_purge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.engine.broker.PURGED_AT_ONCE", 2)
    broker = TaskBroker()
    assert (broker.queue_size(), broker.lock_size()) == (0, 0)
    for number in range(6):
        async_task("math.sqrt", number)
    assert (broker.queue_size(), broker.lock_size()) == (6, 0)
    one = Task.objects.first()
    assert one is not None
    broker.delete(one.id)
    assert broker.queue_size() == 5
    assert broker.purge_queue() == 5
    assert broker.queue_size() == 0
    assert set(Task.objects.values_list("status", flat=True)) == {Status.CANCELLED}, "rows stay"


def test_answers_about_itself() -> None:
    broker = TaskBroker()
    assert broker.ping() is True
    assert broker.info() == "Redrive tasks in PostgreSQL"
    assert broker.list_key == "redrive"
    with pytest.raises(RuntimeError, match=r"manage\.py qcluster"):
        broker.dequeue()
    broker.set_stat("django_q:redrive:cluster:1", "signed", 3)
    assert broker.get_stat("django_q:redrive:cluster:1") is None


class Odd(Exception):
    """Can be pickled and not unpickled: a usual slip of exceptions with arguments of their own."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)


class Row(dict[str, Any]):
    """Filled key by key as it is unpickled."""


def test_a_call_that_cannot_be_unpacked_is_known_by_its_id_and_function() -> None:
    """Its caller can find it, and people see what it was to run."""
    row = Row(a=1)
    call_id = async_task(math.pow, Odd(1, "x"), row, {2, 3}, [Decimal(1)], group="g", task_name="odd")
    task = Task.objects.get()
    assert (task.trace_id, task.subject, task.payload["name"], task.tags) == (call_id, "math.pow", "odd", ["g"])


@pytest.mark.parametrize(
    "package",
    ["", "a:b:c", SignedPackage.dumps(3), SignedPackage.dumps({})[:-2]],
    ids=["empty", "text", "number", "cut"],
)
def test_a_package_of_somebody_else_tells_nothing(package: str) -> None:
    payload, options = described(package)
    assert payload == {"func": "", "name": "", "group": "", "cluster": "", "package": package}
    assert options == {"trace_id": "", "tags": []}
