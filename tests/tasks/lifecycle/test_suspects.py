"""Whom the death of a process is held against: what kills every process that runs it, and nobody else."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models.functions import Now

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.engine import lease
from tasks.lifecycle.claim import CLAIM, parameters
from tasks.lifecycle.suspects import DEATHS_IN_UNREST, patience_seconds, quiet_seconds
from tasks.models import Task, WorkerProcess
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db


def die(*processes: int) -> None:
    """Their sentinels see them end, in this order, and the caretaker comes once."""
    for place, process in enumerate(processes):
        WorkerProcess.objects.filter(pk=process).update(exit_seen_at=Now(), exit_code=-9)
        # In a test all happens within one transaction, whose now() stands still.
        world.age("tasks_workerprocess", "exit_seen_at", 1 - 0.1 * place, f"id = {process}")
    lifecycle.mark_lost(leases_count=False)
    lifecycle.rescue()


def pass_time(seconds: float) -> None:
    """So long ago is by now what has happened."""
    world.age("tasks_task", "status_at", seconds)
    for column in ("exit_seen_at", "lost_at"):
        world.age("tasks_workerprocess", column, seconds)
    world.age("tasks_clustercontact", "contact_since", seconds)


def taken(by: int, count: int = 10) -> list[object]:
    """The ids of what the process claims."""
    return [row.task_id for row in lifecycle.claim(by, count, [])]


def suspect() -> Task:
    """A task that has just seen a second process die under it."""
    task = lifecycle.submit("ticket.triage", {"text": "suspect"})
    for _ in range(2):
        worker = world.worker()
        assert taken(worker, 1) == [task.id]
        die(worker)
    return task


def end(task: Task) -> tuple[str, str, int]:
    """Status, reason, deaths."""
    stored = world.stored(task.id)
    return stored.status, stored.reason, stored.rescues


@pytest.fixture(autouse=True)
def kind() -> None:
    world.prompt_kind()


# --- where it runs ---------------------------------------------------------------------------------------------------


def test_a_process_runs_one_suspect_at_a_time_and_the_usual_tasks_beside_it() -> None:
    suspects = {task.id for task in lifecycle.submit_many("ticket.triage", [{"text": "suspect"}] * 3)}
    Task.objects.update(rescues=2)
    pass_time(quiet_seconds() + 1)
    usual = {task.id for task in lifecycle.submit_many("ticket.triage", [{"text": "usual"}] * 3)}
    Task.objects.filter(pk__in=usual).update(rescues=1)
    first, second = world.worker(), world.worker()
    rows = lifecycle.claim(first, 10, [])
    assert len({row.task_id for row in rows} & suspects) == 1
    assert {row.task_id for row in rows} >= usual
    assert lifecycle.claim(first, 10, []) == []
    (other,) = lifecycle.claim(second, 10, [])
    assert other.task_id in suspects
    (held,) = [row for row in rows if row.task_id in suspects]
    lifecycle.finish(first, [world.succeeded(held)])
    (last,) = lifecycle.claim(first, 10, [])
    assert {held.task_id, other.task_id, last.task_id} == suspects


def test_a_suspect_keeps_its_place_by_priority_and_takes_no_place_too_many() -> None:
    high = lifecycle.submit("ticket.triage", {"text": "suspect"}, priority=50)
    Task.objects.update(rescues=2)
    pass_time(quiet_seconds() + 1)
    usual = lifecycle.submit_many("ticket.triage", [{"text": "usual"}] * 3)
    assert taken(world.worker(), 2) == [high.id, usual[0].id]


def test_suspects_are_found_by_their_own_index() -> None:
    lifecycle.submit_many("ticket.triage", [{"n": n} for n in range(2_000)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tasks_task")
        cursor.execute("EXPLAIN " + CLAIM, parameters(world.worker(), 50, []))
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "using task_suspect on tasks_task s" in plan


# --- when it runs ----------------------------------------------------------------------------------------------------


def test_it_waits_for_quiet_since_its_own_last_death_and_others_do_not() -> None:
    task = suspect()
    usual = lifecycle.submit("ticket.triage", {"text": "usual"})
    assert taken(world.worker()) == [usual.id]
    pass_time(quiet_seconds() - 1)
    assert taken(world.worker()) == []
    pass_time(1.1)
    assert taken(world.worker()) == [task.id]


@pytest.mark.parametrize("role", ["worker", "caretaker"])
def test_it_waits_while_processes_die_that_never_ran_it(role: lease.Role) -> None:
    task = suspect()
    pass_time(quiet_seconds() + 1)
    die(lease.register(role, "host/redrive/1", 10, []))
    assert taken(world.worker()) == []
    pass_time(quiet_seconds() + 1)
    assert taken(world.worker()) == [task.id]


def test_it_waits_where_a_cluster_has_just_come_back_to_the_database() -> None:
    """What died before that is not known yet."""
    task = suspect()
    pass_time(quiet_seconds() + 1)
    lease.touch_contact("host/redrive", 1.0)
    assert taken(world.worker()) == []
    pass_time(quiet_seconds() + 1)
    assert taken(world.worker()) == [task.id]


def test_it_does_not_wait_for_ever() -> None:
    task = suspect()
    pass_time(patience_seconds() - 1)
    die(world.worker())
    assert taken(world.worker()) == []
    pass_time(1.1)
    assert taken(world.worker()) == [task.id]


# --- what a death proves ---------------------------------------------------------------------------------------------


def third_death(task: Task, *before: int) -> None:
    """A process takes it after a quiet time, and dies; ``before``: processes that die a moment earlier."""
    pass_time(quiet_seconds() + 1)
    worker = world.worker()
    assert task.id in taken(worker)
    die(*before, worker)


def test_what_kills_every_process_that_runs_it_dies_with_the_third() -> None:
    task = suspect()
    third_death(task)
    assert end(task) == ("dead", "lease_expired", 3)
    assert DeadLetter.objects.get().reason == "lease_expired"


@pytest.mark.parametrize("role", ["worker", "caretaker"])
def test_a_death_proves_nothing_while_processes_die_that_never_ran_it(role: lease.Role) -> None:
    task = suspect()
    third_death(task, lease.register(role, "host/redrive/1", 10, []))
    assert end(task) == ("ready", "", 3)
    third_death(task)
    assert end(task) == ("dead", "lease_expired", 4)


def test_a_death_proves_nothing_just_after_a_cluster_came_back() -> None:
    """A task that was taken before anybody could know: its caretaker comes to the database before it judges."""
    task = suspect()
    pass_time(quiet_seconds() + 1)
    worker = world.worker()
    assert taken(worker) == [task.id]
    lease.touch_contact("host/redrive", 1.0)
    die(worker)
    assert end(task) == ("ready", "", 3)


def test_a_silent_loss_proves_nothing_whatever_was_before() -> None:
    """Also not of a task that has seen three deaths already."""
    task = suspect()
    third_death(task, world.worker())
    pass_time(quiet_seconds() + 1)
    worker = world.worker()
    assert taken(worker) == [task.id]
    world.age("tasks_workerprocess", "lease_until", 3_600, f"id = {worker}")
    lifecycle.mark_lost(leases_count=True)
    lifecycle.rescue()
    assert end(task) == ("ready", "", 3)


def test_of_two_that_kill_at_the_same_moment_one_is_condemned_and_the_other_next() -> None:
    first, second = suspect(), None
    pass_time(quiet_seconds() + 1)  # else the second would be taken beside the first
    Task.objects.filter(pk=first.pk).update(parked_at=Now())
    second = suspect()
    Task.objects.filter(pk=first.pk).update(parked_at=None)
    pass_time(quiet_seconds() + 1)
    processes = [world.worker(), world.worker()]
    ran = [taken(process) for process in processes]
    assert sorted(map(len, ran)) == [1, 1]
    die(*processes)
    ends = {task.id: end(task) for task in (first, second)}
    assert [ends[ids[0]] for ids in ran] == [("dead", "lease_expired", 3), ("ready", "", 3)]
    (left,) = (task for task in (first, second) if ends[task.id][0] == "ready")
    third_death(left)
    assert end(left) == ("dead", "lease_expired", 4)


def test_so_many_deaths_condemn_a_task_whatever_else_dies() -> None:
    task = suspect()
    for deaths in range(3, DEATHS_IN_UNREST):
        third_death(task, world.worker())
        assert end(task) == ("ready", "", deaths)
    third_death(task, world.worker())
    assert end(task) == ("dead", "lease_expired", DEATHS_IN_UNREST)
