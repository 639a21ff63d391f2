"""Taking back what vanished workers ran."""

from __future__ import annotations

import pytest

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.engine import lease
from tasks.lifecycle.suspects import quiet_seconds
from tasks.models import Attempt, Kind, WorkerProcess
from tasks.states import Outcome
from tests.tasks.lifecycle import world


def vanish(worker: int, *, seen: bool = False) -> None:
    """The worker dies; ``seen``: under the eyes of its sentinel."""
    if seen:
        row = WorkerProcess.objects.get(pk=worker)
        assert lease.record_exit(row.cluster, row.pid, -9) >= 1
    else:
        world.age("tasks_workerprocess", "lease_until", 3_600, f"id = {worker}")
    lifecycle.mark_lost(leases_count=True)


@pytest.mark.django_db
def test_a_prompt_task_goes_by_unknown_back_to_ready() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    vanish(worker)
    assert lifecycle.rescue() == 1
    task, attempt = world.stored(row.task_id), Attempt.objects.get()
    assert (task.status, task.failures, task.rescues) == ("ready", 0, 0)
    assert (attempt.outcome, attempt.counted, attempt.error_code) == ("lost", False, "AI_WORKER_LOST")
    assert world.events(row.task_id)[-2:] == [("rescued", "running", "unknown"), ("requeued", "unknown", "ready")]
    assert lifecycle.rescue() == 0


@pytest.mark.django_db
def test_a_lease_that_ran_out_is_no_proof_while_contact_is_young() -> None:
    worker = world.worker()
    world.age("tasks_workerprocess", "lease_until", 3_600)
    assert lifecycle.mark_lost(leases_count=False) == []
    assert lease.beat(worker, 0)
    assert lifecycle.mark_lost(leases_count=True) == []


@pytest.mark.django_db
def test_a_death_that_the_sentinel_saw_needs_no_waiting() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lease.record_exit("host/redrive/1", WorkerProcess.objects.get().pid, -9)
    assert lifecycle.mark_lost(leases_count=False) == [worker]
    lifecycle.rescue()
    assert world.stored(row.task_id).rescues == 1


@pytest.mark.django_db
def test_side_effects_of_unknown_outcome_become_a_letter() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.handler_kind(), worker)
    vanish(worker)
    lifecycle.rescue()
    letter = DeadLetter.objects.get()
    assert (world.stored(row.task_id).status, letter.reason, letter.error_code) == (
        "dead", "outcome_unknown", "AI_WORKER_LOST",
    )  # fmt: skip
    assert "vanished" in letter.last_error


@pytest.mark.django_db
def test_an_interrupted_side_effect_is_settled_as_unknown() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.handler_kind(), worker)
    end = lifecycle.End(task_id=row.task_id, attempt_id=row.attempt_id, outcome=Outcome.INTERRUPTED)
    lifecycle.finish(worker, [end])
    assert lifecycle.settle_unknown() == 1
    assert DeadLetter.objects.get().reason == "outcome_unknown"


@pytest.mark.django_db
def test_a_cancelled_task_is_not_run_again() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lifecycle.cancel([row.task_id], actor="ana")
    vanish(worker)
    lifecycle.rescue()
    assert world.stored(row.task_id).status == "cancelled"


@pytest.mark.django_db
def test_the_third_death_seen_under_it_kills_a_task_and_silent_ones_do_not_count() -> None:
    kind = world.prompt_kind()
    task = lifecycle.submit(kind.name, {})
    for seen in (False, True, False, True, False, True):
        worker = world.worker()
        assert len(lifecycle.claim(worker, 1, [])) == 1
        vanish(worker, seen=seen)
        lifecycle.rescue()
        # After its second death it waits until it is quiet.
        world.age("tasks_task", "status_at", quiet_seconds() + 1)
    stored = world.stored(task.id)
    assert (stored.status, stored.reason, stored.failures) == ("dead", "lease_expired", 0)
    letter = DeadLetter.objects.get()
    assert (letter.reason, letter.error_code, letter.attempts) == ("lease_expired", "AI_WORKER_LOST", 0)


@pytest.mark.django_db
def test_running_tasks_of_a_stopped_worker_are_taken_back_too() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lease.stop(worker)
    assert lifecycle.rescue() == 1
    assert world.stored(row.task_id).status == "ready"


@pytest.mark.django_db
def test_a_kind_may_be_declared_safe_or_unsafe() -> None:
    worker = world.worker()
    (safe,) = world.claimed(world.handler_kind("safe.one", safe_to_rerun=True), worker)
    (unsafe,) = world.claimed(world.prompt_kind("unsafe.one", safe_to_rerun=False), worker)
    vanish(worker)
    lifecycle.rescue()
    assert (world.stored(safe.task_id).status, world.stored(unsafe.task_id).status) == ("ready", "dead")
    assert Kind.objects.get(name="unsafe.one").reruns_safely is False
