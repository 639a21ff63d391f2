"""The ends of attempts: where each leads, what it counts, and what the fence refuses."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import TypeVar

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.lifecycle import End, Hold, Usage
from tasks.models import Attempt, ModelCall, Provider, Task, WorkerProcess
from tasks.states import Outcome, Reason
from tests.tasks.lifecycle import world

T = TypeVar("T")


@pytest.mark.django_db
def test_success_stores_result_usage_and_trail() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    call = {
        "seq": 1, "provider_name": "p", "model": "m", "messages": [{"role": "user", "content": "ticket 0"}],
        "answer": "done", "finish_reason": "stop", "started_at": timezone.now(), "duration_ms": 12,
    }  # fmt: skip
    usage = Usage(input_tokens=10, output_tokens=4, cost=Decimal("0.00012345"), repairs=1, calls=[call])
    end = End(
        task_id=row.task_id, attempt_id=row.attempt_id, outcome=Outcome.SUCCEEDED, result_text='{"a": 1}', usage=usage
    )
    saved = lifecycle.finish(worker, [end])
    task, attempt = world.stored(row.task_id), Attempt.objects.get()
    assert (saved.won, saved.refused) == ({row.attempt_id}, set())
    assert (task.status, task.result, task.worker_id, task.attempt_id) == ("succeeded", {"a": 1}, None, None)
    assert (task.input_tokens, task.output_tokens, task.cost) == (10, 4, Decimal("0.00012345"))
    assert (attempt.outcome, attempt.counted, attempt.repairs) == ("succeeded", True, 1)
    assert attempt.finished_at == task.finished_at
    assert ModelCall.objects.get().answer == "done"
    assert world.events(row.task_id)[-1] == ("succeeded", "running", "succeeded")


@pytest.mark.django_db
def test_a_json_null_is_a_result() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lifecycle.finish(worker, [world.succeeded(row, "null")])
    assert world.stored(row.task_id).status == "succeeded"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("action", "more", "status", "outcome", "failures", "snoozes", "kind"),
    [
        ("retry", {"delay_seconds": 2}, "retryable", "failed", 1, 0, "retry"),
        ("snooze", {"delay_seconds": 2}, "retryable", "snoozed", 0, 1, "snoozed"),
        ("die", {"reason": Reason.NOT_RETRYABLE}, "dead", "failed", 1, 0, "died"),
    ],
)
def test_a_failure_leads_where_the_decision_says(
    action: str, more: dict[str, object], status: str, outcome: str, failures: int, snoozes: int, kind: str
) -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lifecycle.finish(worker, [world.failed(row, action, **more)])
    task, attempt = world.stored(row.task_id), Attempt.objects.get()
    assert (task.status, task.failures, task.snoozes, task.error_code) == (
        status, failures, snoozes, "AI_UPSTREAM_5XX",
    )  # fmt: skip
    assert (attempt.outcome, attempt.counted, attempt.last_error) == (outcome, outcome == "failed", "busy")
    assert world.events(row.task_id)[-1] == (kind, "running", status)
    if status == "retryable":
        assert 1.9 < (task.run_after - task.status_at).total_seconds() < 2.1
    else:
        assert DeadLetter.objects.get().reason == "not_retryable"


@pytest.mark.django_db
def test_a_success_breaks_the_row_of_snoozes_and_a_failure_too() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    Task.objects.update(snoozes=3)
    lifecycle.finish(worker, [world.failed(row, "retry")])
    assert world.stored(row.task_id).snoozes == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("make", "started", "status"),
    [("prompt", True, "ready"), ("handler", True, "unknown"), ("handler", False, "ready")],
)
def test_an_interrupted_attempt_costs_nothing(make: str, started: bool, status: str) -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind() if make == "prompt" else world.handler_kind(), worker)
    end = End(task_id=row.task_id, attempt_id=row.attempt_id, outcome=Outcome.INTERRUPTED, started=started)
    lifecycle.finish(worker, [end])
    task = world.stored(row.task_id)
    assert (task.status, task.failures, Attempt.objects.get().counted) == (status, 0, False)


@pytest.mark.django_db
@pytest.mark.parametrize("action", ["retry", "snooze", "die"])
def test_a_task_that_was_to_be_cancelled_is_cancelled_rather_than_retried(action: str) -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    assert lifecycle.cancel([row.task_id], actor="ana") == {row.task_id}
    assert lifecycle.cancel([row.task_id], actor="ben") == set()
    more = {"reason": Reason.NOT_RETRYABLE} if action == "die" else {}
    lifecycle.finish(worker, [world.failed(row, action, **more)])
    assert world.stored(row.task_id).status == "cancelled"
    assert not DeadLetter.objects.exists()
    assert [kind for kind, *_ in world.events(row.task_id)][-2:] == ["cancel_requested", "cancelled"]


@pytest.mark.django_db
def test_a_success_wins_over_a_cancel_that_came_too_late() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lifecycle.cancel([row.task_id], actor="ana")
    lifecycle.finish(worker, [world.succeeded(row)])
    assert world.stored(row.task_id).status == "succeeded"


@pytest.mark.django_db
def test_the_fence_refuses_a_late_end_and_notes_it() -> None:
    kind, slow, quick = world.prompt_kind(), world.worker(), world.worker()
    (late,) = world.claimed(kind, slow)
    world.age("tasks_workerprocess", "lease_until", 60, f"id = {slow}")
    assert lifecycle.mark_lost(leases_count=True) == [slow]
    assert lifecycle.rescue() == 1
    (again,) = lifecycle.claim(quick, 1, [])
    lifecycle.finish(quick, [world.succeeded(again, '"the true answer"')])
    saved = lifecycle.finish(slow, [world.succeeded(late, '"a late answer"')])
    assert (saved.won, saved.refused) == (set(), {late.attempt_id})
    assert world.stored(late.task_id).result == "the true answer"
    assert world.events(late.task_id)[-1] == ("late_save_refused", "", "")
    assert WorkerProcess.objects.get(pk=slow).late_saves_refused == 1


@pytest.mark.django_db
def test_another_worker_cannot_end_an_attempt() -> None:
    (row,) = world.claimed(world.prompt_kind(), world.worker())
    lifecycle.finish(world.worker(), [world.succeeded(row)])
    assert world.stored(row.task_id).status == "running"


@pytest.mark.django_db
def test_a_repeated_save_of_a_stored_end_is_no_late_save() -> None:
    """The commit went through and its confirmation was lost: the worker saves again."""
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lifecycle.finish(worker, [world.succeeded(row)])
    saved = lifecycle.finish(worker, [world.succeeded(row)])
    assert (saved.won, saved.refused) == ({row.attempt_id}, set())
    assert [kind for kind, *_ in world.events(row.task_id)] == ["submitted", "claimed", "succeeded"]


@pytest.mark.django_db
def test_the_first_bad_key_dies_and_holds_the_rest_snooze() -> None:
    worker = world.worker()
    rows = world.claimed(world.prompt_kind(), worker, 3)
    hold = Hold("AI_AUTH_FAILED", "Incorrect API key")
    ends = [
        world.failed(row, "die", "AI_AUTH_FAILED", reason=Reason.NOT_RETRYABLE, provider="p", hold=hold) for row in rows
    ]
    lifecycle.finish(worker, ends[:2])
    lifecycle.finish(worker, ends[2:])
    states = sorted((task.status, task.failures, task.snoozes) for task in Task.objects.all())
    assert states == [("dead", 1, 0), ("retryable", 0, 1), ("retryable", 0, 1)]
    held = Provider.objects.get()
    assert (held.hold_reason, held.hold_code, held.held_by) == ("Incorrect API key", "AI_AUTH_FAILED", "redrive")
    assert DeadLetter.objects.count() == 1
    assert lifecycle.release_provider("p", by="ana")
    assert not lifecycle.release_provider("p", by="ana")


@pytest.mark.django_db(transaction=True)
def test_an_end_waits_for_no_lock_on_its_provider(second_connection: psycopg.Connection) -> None:
    """Somebody's open transaction holds the provider: the ends that would cool or hold it wait, the others do not."""
    worker = world.worker()
    limited, refused, good = world.claimed(world.prompt_kind(), worker, 3)
    ends = [
        world.failed(limited, "snooze", "AI_RATE_LIMITED", provider="p", cool_seconds=2.0),
        world.failed(
            refused,
            "die",
            "AI_AUTH_FAILED",
            reason=Reason.NOT_RETRYABLE,
            provider="p",
            hold=Hold("AI_AUTH_FAILED", "no"),
        ),
        world.succeeded(good),
    ]
    with second_connection.transaction():
        second_connection.execute("SELECT name FROM tasks_provider FOR UPDATE")
        saved = lifecycle.finish(worker, ends)
    assert saved.won == {good.attempt_id}
    assert saved.busy == {limited.attempt_id, refused.attempt_id}
    assert lifecycle.finish(worker, ends[:2]).won == saved.busy
    assert Provider.objects.get().hold_code == "AI_AUTH_FAILED"


@pytest.mark.django_db(transaction=True)
def test_a_kind_that_moves_while_its_tasks_end_meets_no_deadlock() -> None:
    """The load holds kind and provider and takes no task; the save holds tasks and waits for no provider."""
    worker = world.worker()
    kind = world.prompt_kind()
    (row,) = world.claimed(kind, worker)
    lifecycle.submit(kind.name, {})
    other = world.provider("other")
    with transaction.atomic():
        Provider.objects.select_for_update().get(pk="p")
        end = world.failed(row, "snooze", "AI_RATE_LIMITED", provider="p", cool_seconds=2.0)
        assert elsewhere(lambda: lifecycle.finish(worker, [end])).busy == {row.attempt_id}
        kind.provider = other
        kind.save()
    assert lifecycle.finish(worker, [end]).won == {row.attempt_id}


@pytest.mark.django_db
def test_a_named_time_cools_the_provider_and_never_shortens_its_rest() -> None:
    worker = world.worker()
    rows = world.claimed(world.prompt_kind(), worker, 2)
    for row, seconds in zip(rows, (20.0, 2.0), strict=True):
        lifecycle.finish(worker, [world.failed(row, "snooze", "AI_RATE_LIMITED", provider="p", cool_seconds=seconds)])
    left = (Provider.objects.get().cooling_until - timezone.now()).total_seconds()
    assert 18 < left <= 20


@pytest.mark.django_db(transaction=True)
def test_a_recorder_that_fails_takes_the_death_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE deadletters_deadletter ADD CONSTRAINT no_letters CHECK (false) NOT VALID")
    try:
        with pytest.raises(IntegrityError):
            lifecycle.finish(worker, [world.failed(row, "die", reason=Reason.NOT_RETRYABLE)])
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE deadletters_deadletter DROP CONSTRAINT no_letters")
    assert world.stored(row.task_id).status == "running"
    assert Attempt.objects.get().outcome == "running"


def elsewhere(function: Callable[[], T]) -> T:
    """``function()`` in a thread with a connection of its own, while this one's transaction is open."""

    def run() -> T:
        try:
            return function()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result(10)


@pytest.mark.django_db(transaction=True)
def test_rescue_and_a_save_at_once_one_wins() -> None:
    """The save holds the task's row; the rescue skips it, and afterwards finds nothing to take back."""
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    world.age("tasks_workerprocess", "lease_until", 60)
    lifecycle.mark_lost(leases_count=True)
    with transaction.atomic():
        lifecycle.finish(worker, [world.succeeded(row)])
        assert elsewhere(lifecycle.rescue) == 0
    assert lifecycle.rescue() == 0
    assert world.stored(row.task_id).status == "succeeded"
