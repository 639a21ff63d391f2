"""The trickle: what it submits, what it never calls, and when it waits."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tasks import lifecycle, submit
from tasks.demo import trickle
from tasks.demo.configure import configure
from tasks.demo.models import TrickledTask
from tasks.demo.place import DemoPlace
from tasks.demo.trickle import Trickle, interval, submit_if_room, submit_next, unfinished, withdraw_paid
from tasks.models import Kind, Provider, Task
from tasks.states import Status
from tests.tasks.demo.asking import until

URL = "http://127.0.0.1:4100/fault/demo/v1"


def real_provider() -> Provider:
    """One that costs money."""
    return Provider.objects.get_or_create(name="real", defaults={"base_url": "https://llm.example/v1"})[0]


def make_paid(name: str, *, backup: bool = False) -> None:
    """Gives a kind to a real provider, as a person does."""
    kind = Kind.objects.get(pk=name)
    setattr(kind, "backup_provider" if backup else "provider", real_provider())
    kind.save()


@pytest.mark.django_db
def test_tickets_are_submitted_in_turn() -> None:
    configure(URL, {})
    tasks = [submit_next(number) for number in range(5)]
    assert [task.kind_id for task in tasks if task] == [
        "ticket.triage",
        "customer.summary",
        "ticket.triage",
        "reply.draft",
        "ticket.triage",
    ]
    first = Task.objects.get(pk=tasks[0].pk)  # type: ignore[union-attr]
    assert first.status == Status.READY
    assert first.payload["ticket"] == "T-0001"
    assert first.subject == "Charged twice for the June plan"
    assert (first.session_id, first.user_id, first.tags) == ("S-1004-1", "C-1004", ["demo", "email"])


@pytest.mark.django_db
@pytest.mark.parametrize("backup", [False, True])
def test_a_kind_that_costs_money_is_left_alone(backup: bool) -> None:
    configure(URL, {})
    make_paid("ticket.triage", backup=backup)
    assert submit_next(0) is None
    assert submit_next(1) is not None
    assert set(Task.objects.values_list("kind", flat=True)) == {"customer.summary"}


@pytest.mark.django_db
def test_a_kind_run_by_code_or_deleted_is_left_alone() -> None:
    configure(URL, {})
    Kind.objects.filter(pk="ticket.triage").update(handler="mine")
    Kind.objects.get(pk="reply.draft").delete()
    assert [submit_next(number) for number in (0, 3)] == [None, None]


@pytest.mark.django_db
def test_what_waits_is_withdrawn_when_its_kind_starts_to_cost_money() -> None:
    configure(URL, {})
    ours, other = submit_next(0), submit_next(1)
    assert ours and other
    persons = submit("ticket.triage", {"text": "A person's own task"}, tags=["demo"])
    Kind.objects.filter(pk="ticket.triage").update(provider=real_provider())
    assert withdraw_paid() == {ours.pk}
    statuses = dict(Task.objects.values_list("pk", "status"))
    assert statuses == {ours.pk: Status.CANCELLED, other.pk: Status.READY, persons.pk: Status.READY}
    assert withdraw_paid() == set()
    assert Task.objects.get(pk=ours.pk).events.count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize("change", ["kind", "provider"])
def test_the_change_itself_withdraws_what_waits(change: str) -> None:
    configure(URL, {})
    task = submit_next(0)
    assert task
    if change == "kind":
        make_paid("ticket.triage")
    else:
        provider = Provider.objects.get(name="simulated")
        provider.base_url, provider.simulated = "https://llm.example/v1", False
        provider.save()
    assert Task.objects.get(pk=task.pk).status == Status.CANCELLED


@pytest.mark.django_db
def test_what_a_person_reprocesses_is_not_withdrawn() -> None:
    configure(URL, {})
    task = submit_next(0)
    assert task
    Task.objects.filter(pk=task.pk).update(cycle=2)
    make_paid("ticket.triage")
    assert withdraw_paid() == set()
    assert Task.objects.get(pk=task.pk).status == Status.READY


@pytest.mark.django_db
def test_where_nobody_runs_the_demo_its_names_are_anybody_s() -> None:
    """Kinds and a tag of the same names, on a real provider, whatever a person then changes."""
    kind = Kind(name="ticket.triage", provider=real_provider(), model="m", prompt="{{ text }}")
    kind.save()
    task = submit("ticket.triage", {"text": "Real work"}, tags=["demo"])
    kind.provider = Provider.objects.create(name="better", base_url="https://better.example/v1")
    with CaptureQueriesContext(connection) as asked:
        kind.save()
    for provider in Provider.objects.all():
        provider.save()
    assert Task.objects.get(pk=task.pk).status == Status.READY
    assert [query["sql"] for query in asked if '"tasks_task"' in query["sql"]] == []


@pytest.mark.django_db
def test_a_task_can_be_deleted_as_if_there_were_no_demo() -> None:
    configure(URL, {})
    first, second = submit_next(0), submit_next(1)
    assert first and second
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM tasks_taskevent WHERE task_id = %s", [first.pk])
        cursor.execute("DELETE FROM tasks_task WHERE id = %s", [first.pk])
    second.delete()
    assert TrickledTask.objects.count() == 1
    assert unfinished() == 0
    assert not TrickledTask.objects.exists()


@pytest.mark.django_db
def test_it_counts_unfinished_tasks_of_its_own_only() -> None:
    configure(URL, {})
    submit("ticket.triage", {"text": "A person's own task"}, tags=["demo"])
    tasks = [task for task in map(submit_next, range(4)) if task]
    assert unfinished() == 4
    lifecycle.cancel([tasks[0].pk], actor="test")
    assert unfinished() == 3
    assert set(TrickledTask.objects.values_list("pk", flat=True)) == {task.pk for task in tasks[1:]}


@pytest.mark.django_db
def test_what_ended_costs_nothing_however_much_it_is() -> None:
    """No question of the trickle reads the task table through: not when it counts, not when it withdraws."""
    configure(URL, {})
    tasks = [task for task in map(submit_next, range(5)) if task]
    fill_with_ended(tasks[0], 20_000)
    Kind.objects.filter(pk="ticket.triage").update(provider=real_provider())
    with CaptureQueriesContext(connection) as asked:
        assert unfinished() == 5
        assert len(withdraw_paid()) == 3
    reads = [query["sql"] for query in asked if query["sql"].startswith("SELECT") and "tasks_task" in query["sql"]]
    assert len(reads) >= 2
    with connection.cursor() as cursor:
        for sql in reads:
            cursor.execute(f"EXPLAIN {sql}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "Seq Scan on tasks_task" not in plan, plan


def fill_with_ended(task: Task, count: int) -> None:
    """So many more tasks like this one, all succeeded."""
    copied = [field.column for field in Task._meta.concrete_fields if field.name not in {"id", "status", "finished_at"}]
    columns = ", ".join(copied)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO tasks_task (id, status, finished_at, {columns})"  # noqa: S608 -- our own columns
            f" SELECT gen_random_uuid(), 'succeeded', now(), {columns} FROM tasks_task, generate_series(1, %s)"
            " WHERE id = %s",
            [count, task.pk],
        )
        cursor.execute("ANALYZE tasks_task")


@pytest.mark.django_db
def test_it_waits_while_too_much_is_unfinished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(URL, {})
    monkeypatch.setattr(trickle, "MOST_UNFINISHED", 3)
    place = DemoPlace(tmp_path)
    made = [submit_if_room(place) for _ in range(7)]
    assert [task is not None for task in made] == [True] * 4 + [False] * 3
    assert place.read("next") == 4
    assert made[0]
    lifecycle.cancel([made[0].pk], actor="test")
    task = submit_if_room(place)
    assert task is not None
    assert task.payload["ticket"] == "T-0005"


@pytest.mark.django_db
def test_a_kind_that_is_left_out_does_not_stop_the_others(tmp_path: Path) -> None:
    configure(URL, {})
    make_paid("ticket.triage")
    place = DemoPlace(tmp_path)
    kinds = [task.kind_id for task in (submit_if_room(place) for _ in range(5)) if task]
    assert kinds == ["customer.summary", "reply.draft"]


def test_it_starts_briskly_and_calms_down() -> None:
    assert [interval(elapsed) for elapsed in (0, 29.9, 30, 3600)] == [1, 1, 3, 3]


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wait between two tasks."""
    monkeypatch.setattr(trickle, "BRISK_INTERVAL", 0.01)


@pytest.mark.django_db(transaction=True)
def test_the_thread_survives_a_lost_database(
    tmp_path: Path, brisk: None, second_connection: psycopg.Connection
) -> None:
    configure(URL, {})
    ended = threading.Event()
    thread = Trickle(DemoPlace(tmp_path), ended.set)
    thread.start()
    try:
        until(lambda: Task.objects.count() >= 2)
        ours = connection.connection.info.backend_pid
        killed = second_connection.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid NOT IN (%s, pg_backend_pid())",
            [ours],
        ).fetchone()
        assert killed is not None and killed[0] >= 1
        before = Task.objects.count()
        until(lambda: Task.objects.count() > before + 2)
    finally:
        thread.stopping.set()
        thread.join(10)
    assert not thread.is_alive()
    assert thread.failure is None
    assert not ended.is_set()


@pytest.mark.django_db(transaction=True)
def test_an_error_ends_the_thread_and_is_kept(tmp_path: Path, brisk: None) -> None:
    configure(URL, {})
    folder = tmp_path / "place"
    ended = threading.Event()
    thread = Trickle(DemoPlace(folder), ended.set)
    folder.rmdir()
    thread.start()
    assert ended.wait(10)
    thread.join(10)
    assert isinstance(thread.failure, FileNotFoundError)
