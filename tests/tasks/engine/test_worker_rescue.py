"""Taking back what was lost, when one row makes trouble."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection
from pytest_django import Settings

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.engine import lease
from tasks.engine.caretaker import Caretaker
from tasks.models import Task, WorkerProcess
from tests.cluster import wait_until
from tests.tasks.engine.bench import letters_refused
from tests.tasks.lifecycle import world

CLUSTER = lease.cluster_name("redrive", "1")


@contextmanager
def caretaking() -> Iterator[Caretaker]:
    """A caretaker at work in a thread of its own."""
    caretaker = Caretaker(CLUSTER)
    thread = threading.Thread(target=caretaker.run)
    thread.start()
    try:
        yield caretaker
    finally:
        caretaker.stop()
        thread.join(10)
        assert not thread.is_alive()


def statuses() -> list[str]:
    return sorted(Task.objects.values_list("status", flat=True))


@pytest.mark.django_db(transaction=True)
def test_a_task_that_cannot_die_keeps_no_other_from_being_rescued(second_connection: psycopg.Connection) -> None:
    worker = world.worker()
    rows = world.claimed(world.handler_kind(), worker, 5)
    world.age("tasks_workerprocess", "lease_until", 60)
    lifecycle.mark_lost(leases_count=True)
    with letters_refused(second_connection, rows[1].task_id):
        assert lifecycle.rescue() == 4
        assert statuses() == ["dead", "dead", "dead", "dead", "running"]
        assert lifecycle.rescue() == 0
    assert lifecycle.rescue() == 1
    assert DeadLetter.objects.filter(reason="outcome_unknown").count() == 5


@pytest.mark.django_db(transaction=True)
def test_a_task_that_cannot_expire_keeps_no_other_alive(second_connection: psycopg.Connection) -> None:
    world.prompt_kind()
    tasks = lifecycle.submit_many("ticket.triage", [{"text": "old"}] * 3)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tasks_task SET expires_at = now() - interval '1 minute'")
    with letters_refused(second_connection, tasks[0].id):
        assert lifecycle.expire() == 2
        assert statuses() == ["dead", "dead", "ready"]
    assert lifecycle.expire() == 1


@pytest.mark.django_db(transaction=True)
def test_a_worker_row_that_is_held_keeps_no_other_from_being_marked(second_connection: psycopg.Connection) -> None:
    held, gone = world.worker(), world.worker()
    world.age("tasks_workerprocess", "lease_until", 60)
    with second_connection.transaction():
        second_connection.execute("SELECT 1 FROM tasks_workerprocess WHERE id = %s FOR UPDATE", [held])
        assert lifecycle.mark_lost(leases_count=True) == [gone]
    assert lifecycle.mark_lost(leases_count=True) == [held]


@pytest.mark.django_db(transaction=True)
def test_a_duty_that_fails_keeps_the_others_from_nothing(second_connection: psycopg.Connection) -> None:
    """The table that rescues need is away; what is due becomes ready all the same."""
    world.prompt_kind()
    task = lifecycle.submit("ticket.triage", {"text": "x"})
    Task.objects.update(status="scheduled")
    second_connection.execute("ALTER TABLE tasks_clustercontact RENAME TO tasks_clustercontact_away")
    try:
        with caretaking():
            wait_until(lambda: world.stored(task.id).status == "ready", "the due task ready")
            Task.objects.update(expires_at=world.stored(task.id).created_at)
            wait_until(lambda: world.stored(task.id).status == "dead", "the expired task dead")
    finally:
        second_connection.execute("ALTER TABLE tasks_clustercontact_away RENAME TO tasks_clustercontact")


@pytest.mark.django_db(transaction=True)
def test_a_machine_that_slept_finds_its_workers_alive(settings: Settings) -> None:
    """All leases ran out while nobody was awake: the first to be up must not condemn the others."""
    settings.REDRIVE_LEASE_SECONDS = 4.0
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lease.touch_contact(lease.contact_name(CLUSTER), 1.0)
    for column in ("contact_at", "contact_since"):
        world.age("tasks_clustercontact", column, 60 if column == "contact_since" else 10)
    world.age("tasks_workerprocess", "lease_until", 14)
    with caretaking():
        wait_until(
            lambda: WorkerProcess.objects.filter(role="caretaker", stopped_at=None).exists(), "the caretaker's row"
        )
        due = lifecycle.submit("ticket.triage", {"text": "due"})
        Task.objects.filter(pk=due.pk).update(status="scheduled")
        wait_until(lambda: world.stored(due.id).status == "ready", "two rounds of the caretaker")
        assert lease.beat(worker, 1), "the worker is back within its time"
    assert world.stored(row.task_id).status == "running"
