"""Why a task waits, in words."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest
from django.utils import timezone

from tasks import lifecycle
from tasks.models import LimitCharge, Task
from tasks.states import Status
from tasks.views.why import Crew, explain, held_back
from tasks.words import clock
from tests.factories import make_kind, make_provider, make_task, make_worker

pytestmark = pytest.mark.django_db


def why(task: Task) -> str:
    """The sentence for a task as it is in the database now."""
    return explain(Task.objects.for_page().get(pk=task.pk), Crew())  # type: ignore[attr-defined]


def short(task: Task) -> str:
    """The words for a list."""
    return held_back([Task.objects.for_list().get(pk=task.pk)], Crew()).get(task.pk, "")


def change(task: Task, **fields: object) -> Task:
    """Set columns as the engine would."""
    Task.objects.filter(pk=task.pk).update(**fields)
    return task


def ago(**span: float) -> object:
    """A time in the past (negative: in the future)."""
    return timezone.now() - timedelta(**span)


def test_ready_with_a_free_worker() -> None:
    """Nothing in the way."""
    make_worker()
    assert why(make_task()) == "Ready: it starts as soon as a worker has a free slot."


def test_kind_paused() -> None:
    """Who, when, why."""
    kind = make_kind()
    task = make_task()
    lifecycle.pause_kind(kind.pk, by="ana", reason="wrong language.")
    kind.__class__.objects.update(paused_at=ago(minutes=5.05))
    assert why(task) == "Held back: the kind is paused. Paused by ana 5 min 3 s ago: wrong language."


def test_provider_on_hold() -> None:
    """With the code; what the provider said is masked."""
    task = make_task()
    lifecycle.hold_provider("acme", by="redrive", reason="bad key for jane.roe@example.com", code="AI_AUTH_FAILED")
    sentence = why(task)
    assert sentence.startswith("Held back: provider acme is on hold. Put on hold by redrive ")
    assert sentence.endswith("(AI_AUTH_FAILED).") and "jane.roe" not in sentence


def test_provider_cooling() -> None:
    """Until when."""
    make_provider(cooling_until=ago(seconds=-20.3), cooling_reason="AI_RATE_LIMITED")
    sentence = why(make_task())
    assert sentence.startswith("Held back: provider acme is cooling. Cooling until ")
    assert sentence.endswith("in 20 s: AI_RATE_LIMITED.")


def test_a_provider_that_has_cooled_holds_nothing_back() -> None:
    """The past is past."""
    make_worker()
    make_provider(cooling_until=ago(seconds=1), cooling_reason="AI_RATE_LIMITED")
    assert why(make_task()).startswith("Ready:")


def test_pause_comes_before_hold() -> None:
    """What a person did is told first."""
    task = make_task()
    lifecycle.hold_provider("acme", by="redrive", reason="bad key")
    lifecycle.pause_kind("ticket.triage", by="ana", reason="x")
    assert why(task).startswith("Held back: the kind is paused.")


def test_no_worker_at_all() -> None:
    """And what to do."""
    make_worker(lease=-1)
    make_worker(lost_at=ago(seconds=1))
    make_worker(stopped_at=ago(seconds=1))
    make_worker(role="caretaker")
    assert why(make_task()) == "No worker process is alive: start one with “manage.py qcluster”."


def test_no_worker_for_this_handler() -> None:
    """The handler's name is told."""
    make_worker(handlers=["other"])
    task = make_task(kind=make_kind("invoice.check", handler="invoices.check"))
    assert why(task) == "No worker runs this kind: no live process knows the handler “invoices.check”."


def test_set_aside() -> None:
    """Its session is frozen."""
    assert why(change(make_task(), parked_at=ago(minutes=2))) == "Held back: set aside 2 min ago with its session."


def test_running() -> None:
    """Which attempt, since when."""
    task = change(make_task(Status.RUNNING, failures=1), status_at=ago(seconds=12.2))
    assert why(task) == "Attempt 2 of 3 started 12 s ago."


def test_running_with_a_cancel_asked_for() -> None:
    """It goes on until its worker has aborted it."""
    task = change(make_task(Status.RUNNING), cancel_requested_at=ago(seconds=2.2))
    assert why(task) == "Cancel was asked for 2.2 s ago: its worker is aborting the call."


@pytest.mark.parametrize(
    ("status", "fields", "start"),
    [
        (Status.RETRYABLE, {}, "Retries in 14 s, at "),
        (Status.RETRYABLE, {"snoozes": 2}, "Put off without using budget: tries again in 14 s, at "),
        (Status.SCHEDULED, {}, "Starts in 14 s, at "),
    ],
)
def test_due_later(status: Status, fields: dict[str, object], start: str) -> None:
    """In how long, and at what time."""
    assert why(change(make_task(status), run_after=ago(seconds=-14.3), **fields)).startswith(start)


def test_due_now() -> None:
    """Until the caretaker has moved it, within a second."""
    assert why(change(make_task(Status.RETRYABLE), run_after=ago(seconds=1))) == "Due now."


def test_due_later_on_a_held_provider() -> None:
    """Both are told: the time would not be kept."""
    task = make_task(Status.RETRYABLE)
    lifecycle.hold_provider("acme", by="ana", reason="unpaid")
    sentence = why(task)
    assert sentence.startswith("Retries in") and "Held back: provider acme is on hold." in sentence


def test_dead() -> None:
    """Reason and code."""
    task = change(make_task(Status.DEAD), finished_at=ago(hours=2, minutes=10))
    assert why(task) == "Died 2 h 10 min ago: attempts exhausted (AI_UPSTREAM_5XX)."


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.CANCELLED, Status.SKIPPED])
def test_ended(status: Status) -> None:
    """When."""
    task = change(make_task(status), finished_at=ago(minutes=3))
    assert why(task) == f"{status.capitalize()} 3 min ago."


def test_unknown() -> None:
    """It says that nobody knows, and who decides."""
    assert why(make_task(Status.UNKNOWN)).endswith("whether the work happened is open. It is being decided.")


def test_unknown_and_its_handler_is_asked() -> None:
    """How often, and how often at most."""
    kind = make_kind("refund", handler="refund")
    task = change(make_task(Status.UNKNOWN, kind=kind), asks=3)
    make_worker(handlers=["refund"], reconcilers=["refund"])
    assert why(task).endswith("is open. Its handler is asked: 3 of at most 10 times so far.")


def test_unknown_and_nobody_to_ask() -> None:
    """Until when it waits for somebody."""
    kind = make_kind("refund", handler="refund")
    since = timezone.now() - timedelta(minutes=2)
    task = change(make_task(Status.UNKNOWN, kind=kind), ask_after=since)
    make_worker(handlers=["refund"])
    assert f"No live worker can be asked. If none comes by {clock(since + timedelta(minutes=10))}," in why(task)


def held(lane: Task, count: int) -> None:
    """So many tasks of that kind under way."""
    for _ in range(count):
        make_task(Status.RUNNING, kind=lane.kind)


def test_behind_the_limit_of_the_kind() -> None:
    make_worker()
    make_kind(concurrency_limit=2)
    task = make_task()
    held(task, 1)
    assert why(task).startswith("Ready")
    held(task, 1)
    assert why(task) == (
        "Waits behind a limit: 2 of at most 2 tasks of ticket.triage are under way. It starts when one ends."
    )
    assert short(task) == "ticket.triage is at its limit of tasks at once"


def test_behind_the_concurrency_of_the_provider() -> None:
    make_worker()
    make_provider(max_concurrency=1)
    task = make_task()
    held(task, 1)
    assert why(task) == "Waits behind a limit: only 1 task of acme may be under way. It starts when no other is."
    assert short(task) == "acme is at its limit of tasks at once"


def test_behind_the_requests_of_a_minute() -> None:
    worker = make_worker()
    make_provider(requests_per_minute=3)
    for _ in range(3):
        make_task()
    waits = make_task()
    assert len(lifecycle.claim(worker.pk, 3, [])) == 3
    Task.objects.filter(status="running").update(priority=1)
    assert "acme had 3 of at most 3 requests in the last minute" in why(waits)
    assert short(waits) == "acme is at its requests per minute"


def test_behind_a_single_request_a_minute() -> None:
    worker = make_worker()
    make_provider(requests_per_minute=1)
    make_task()
    waits = make_task()
    assert len(lifecycle.claim(worker.pk, 1, [])) == 1
    Task.objects.filter(status="running").update(priority=1)
    assert "acme may have only 1 request in a minute. It starts when the last is a minute old." in why(waits)


def test_behind_the_tokens_of_a_minute() -> None:
    """What has ended and no claim has counted yet is counted here."""
    make_worker()
    make_provider(tokens_per_minute=1_000)
    task = make_task()
    LimitCharge.objects.create(provider="acme", requests=0, tokens=1_200)
    assert "acme spent 1,200 of at most 1,000 tokens in the last minute" in why(task)
    LimitCharge.objects.update(at=ago(seconds=61))
    assert why(task).startswith("Ready")


def test_a_suspect_starts_apart() -> None:
    make_worker()
    task = make_task(rescues=2)
    assert why(task).startswith("2 worker processes died under it, so it starts apart")
    assert why(task).endswith("Another death while nothing else dies is its end.")
    assert short(task) == "runs apart: processes died under it"


def test_a_page_of_tasks_asks_once(django_assert_num_queries: Callable[..., AbstractContextManager[None]]) -> None:
    """Whatever number of rows: one query for the workers, three for the limits."""
    make_worker()
    make_kind(concurrency_limit=1)
    held(make_task(), 1)
    for _ in range(20):
        make_task()
    tasks = list(Task.objects.for_list())
    with django_assert_num_queries(4):
        assert len(held_back(tasks, Crew())) == 21
