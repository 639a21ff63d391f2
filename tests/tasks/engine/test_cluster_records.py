"""What the sentinel writes down about its children, and that an outage only delays it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import Schedule
from django_q.tasks import schedule

from tasks.engine import lease
from tasks.models import Task, WorkerProcess
from tests.tasks.engine.tree import Tree, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def recorded(plant: Callable[..., Tree], test_database_url: str) -> Tree:
    """A tree on the test database, with a row for each of its processes, as they would have registered themselves."""
    tree = plant(DATABASE_URL=test_database_url)
    tree.wait_ready()
    register(tree)
    return tree


def register(tree: Tree) -> None:
    for line in tree.events("born"):
        row = lease.register(line["role"], line["cluster"], 1, [])
        WorkerProcess.objects.filter(id=row).update(pid=line["pid"])


def exit_code(pid: int) -> int | None:
    return WorkerProcess.objects.get(pid=pid).exit_code


@pytest.mark.parametrize("role", ["worker", "caretaker"])
def test_a_death_is_written_down_within_seconds(recorded: Tree, role: str) -> None:
    victim = recorded.pids(role)[0]
    recorded.kill(victim)
    wait_until(lambda: exit_code(victim) == -signal.SIGKILL, 4, "the death in its row")
    others = WorkerProcess.objects.exclude(pid=victim)
    assert others.count() == 2
    assert not others.filter(exit_seen_at__isnull=False).exists()


def test_a_blocked_loop_that_was_killed_is_written_down(recorded: Tree) -> None:
    victim = recorded.pids("worker")[0]
    recorded.kill(victim, signal.SIGUSR1)
    wait_until(lambda: exit_code(victim) == -signal.SIGKILL, 8, "the death in its row")


def test_a_clean_end_is_no_death(recorded: Tree) -> None:
    asked, victim = recorded.pids("worker")
    recorded.kill(asked, signal.SIGTERM)
    wait_until(lambda: len(recorded.events("born", "worker")) == 3, 4, "a replacement")
    recorded.kill(victim)
    wait_until(lambda: exit_code(victim) == -signal.SIGKILL, 4, "the later death in its row")
    assert exit_code(asked) is None


def test_the_end_of_the_whole_tree_is_no_evidence(recorded: Tree) -> None:
    recorded.kill(recorded.sentinel)
    recorded.wait_gone(3)
    assert not WorkerProcess.objects.filter(exit_seen_at__isnull=False).exists()


def test_a_death_during_an_outage_is_written_down_after_it(recorded: Tree) -> None:
    """The outage: the table is not there, so that every try fails at once."""
    victim = recorded.pids("worker")[0]
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tasks_workerprocess RENAME TO tasks_workerprocess_away")
    try:
        recorded.kill(victim)
        wait_until(lambda: "could not be written down yet" in recorded.errors.read_text(), 6, "a failed try")
        recorded.wait_ready(seconds=3)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE tasks_workerprocess_away RENAME TO tasks_workerprocess")
    wait_until(lambda: exit_code(victim) == -signal.SIGKILL, 12, "the death in its row")
    assert recorded.main.poll() is None


def test_a_due_schedule_becomes_a_task_within_the_schedulers_half_minute(recorded: Tree) -> None:
    past = timezone.now() - timedelta(hours=1)
    schedule("math.sqrt", 16, name="roots", schedule_type=Schedule.DAILY, next_run=past)
    wait_until(Task.objects.exists, 40, "the task of the schedule")
    assert Task.objects.get().payload["group"] == "roots"
    tree = {recorded.main.pid, recorded.sentinel, *recorded.pids("worker"), *recorded.pids("caretaker")}
    wait_until(lambda: recorded.members() == tree, 3, "the end of the errand, and of nothing else")
    assert len(recorded.events("born")) == 3
