"""Limits of kinds and providers: never exceeded, whoever claims at the same moment, and used up where work waits."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from tasks import lifecycle
from tasks.lifecycle import Claimed, End, Taken, Usage, limits
from tasks.lifecycle.limits import WINDOW, Window
from tasks.lifecycle.suspects import quiet_seconds
from tasks.models import Kind, LimitCharge, Provider, Task
from tasks.models.limit import Limit
from tasks.states import Outcome
from tests.tasks.lifecycle import world


def ready(kind: str, count: int, **options: Any) -> None:
    lifecycle.submit_many(kind, [{"n": n} for n in range(count)], **options)


def claim(count: int = 50, by: int | None = None) -> Taken:
    """A claim by this worker, or a new one."""
    return lifecycle.claim_batch(by or world.worker(), count, ["refund"])


def end(worker: int, tasks: list[Claimed], *calls: dict[str, Any]) -> None:
    """All succeed, each with these calls."""
    trail = [{**one, "seq": number} for number, one in enumerate(calls, 1)]
    ends = [
        End(
            task_id=task.task_id,
            attempt_id=task.attempt_id,
            outcome=Outcome.SUCCEEDED,
            result_text='"x"',
            usage=Usage(calls=trail),
        )
        for task in tasks
    ]
    assert len(lifecycle.finish(worker, ends).won) == len(tasks)


@pytest.mark.django_db
def test_a_kind_runs_no_more_at_once_than_it_may() -> None:
    world.prompt_kind(concurrency_limit=3)
    ready("ticket.triage", 10)
    worker = world.worker()
    first = claim(by=worker)
    assert (len(first.tasks), first.limited) == (3, True)
    assert claim(by=world.worker()).tasks == []
    end(worker, first.tasks[:2])
    assert len(claim().tasks) == 2


@pytest.mark.django_db
def test_a_provider_runs_no_more_at_once_than_it_may_over_all_its_kinds() -> None:
    """The more urgent kind takes the room."""
    provider = world.provider(max_concurrency=4)
    for name in ("calm", "urgent"):
        world.prompt_kind(name, provider=provider)
    ready("calm", 10)
    ready("urgent", 3, priority=50)
    assert Counter(task.kind for task in claim().tasks) == {"urgent": 3, "calm": 1}


@pytest.mark.django_db
def test_both_limits_hold() -> None:
    provider = world.provider(max_concurrency=4)
    world.prompt_kind("a", provider=provider, concurrency_limit=1)
    world.prompt_kind("b", provider=provider)
    ready("a", 10, priority=50)
    ready("b", 10)
    assert Counter(task.kind for task in claim().tasks) == {"a": 1, "b": 3}


@pytest.mark.django_db
def test_what_is_not_limited_is_not_kept_back() -> None:
    world.prompt_kind("a", concurrency_limit=1)
    world.handler_kind()
    ready("a", 10, priority=50)
    ready("refund.execute", 10)
    taken = claim(8)
    assert Counter(task.kind for task in taken.tasks) == {"a": 1, "refund.execute": 7}


@pytest.mark.django_db
def test_a_suspect_takes_room_too() -> None:
    world.prompt_kind(concurrency_limit=1)
    ready("ticket.triage", 2)
    Task.objects.filter(pk=Task.objects.order_by("pk").values("pk")[:1]).update(rescues=2)
    world.age("tasks_task", "status_at", quiet_seconds() + 1)
    worker = world.worker()
    assert len(claim(by=worker).tasks) == 1
    assert claim().tasks == []


@pytest.mark.django_db
def test_requests_a_minute() -> None:
    provider = world.provider(requests_per_minute=5)
    world.prompt_kind(provider=provider)
    ready("ticket.triage", 20)
    worker = world.worker()
    taken = claim(by=worker)
    assert len(taken.tasks) == 5
    end(worker, taken.tasks, world.a_call())
    assert claim(by=worker).tasks == []
    # half a minute later nothing has left the window, after a minute all has
    Limit.objects.update(second=limits_second() - 30)
    assert claim(by=worker).tasks == []
    Limit.objects.update(second=limits_second() - WINDOW)
    assert len(claim(by=worker).tasks) == 5


def limits_second() -> int:
    return int(Limit.objects.get(scope="provider").second)


@pytest.mark.django_db
def test_a_repair_counts_as_a_request() -> None:
    provider = world.provider(requests_per_minute=5)
    world.prompt_kind(provider=provider)
    ready("ticket.triage", 20)
    worker = world.worker()
    (task,) = claim(1, by=worker).tasks
    end(worker, [task], world.a_call(), world.a_call(), world.a_call())
    assert len(claim(by=worker).tasks) == 2


@pytest.mark.django_db
def test_tokens_a_minute() -> None:
    """What runs is taken to spend what attempts there spend; what they spent counts for a minute."""
    provider = world.provider(tokens_per_minute=1_000)
    world.prompt_kind(provider=provider)
    ready("ticket.triage", 20)
    worker = world.worker()
    first = claim(by=worker).tasks
    assert len(first) == 1
    end(worker, first, world.a_call(tokens=200))
    second = claim(by=worker).tasks
    assert len(second) == 4
    assert claim(by=worker).tasks == []
    end(worker, second, world.a_call(tokens=200))
    assert claim(by=worker).tasks == []


@pytest.mark.django_db
def test_a_limit_below_one_attempt_lets_one_through() -> None:
    provider = world.provider(tokens_per_minute=100)
    world.prompt_kind(provider=provider)
    ready("ticket.triage", 3)
    worker = world.worker()
    tasks = claim(by=worker).tasks
    end(worker, tasks, world.a_call(tokens=5_000))
    assert len(tasks) == 1 and claim(by=worker).tasks == []
    Limit.objects.update(second=limits_second() - WINDOW)
    assert len(claim(by=worker).tasks) == 1


@pytest.mark.django_db
def test_a_provider_without_a_rate_is_charged_nothing() -> None:
    world.prompt_kind()
    ready("ticket.triage", 1)
    worker = world.worker()
    end(worker, claim(by=worker).tasks, world.a_call(tokens=9))
    assert not LimitCharge.objects.exists() and not Limit.objects.exists()


@pytest.mark.django_db
def test_a_call_of_another_provider_is_charged_there() -> None:
    """A code handler's, whose claim counted no request."""
    world.provider(requests_per_minute=5)
    world.handler_kind()
    ready("refund.execute", 1)
    worker = world.worker()
    end(worker, claim(by=worker).tasks, world.a_call(tokens=7), world.a_call(tokens=1))
    assert list(LimitCharge.objects.values_list("provider", "requests", "tokens")) == [("p", 2, 8)]


@pytest.mark.django_db
def test_a_limit_that_is_taken_back_is_gone() -> None:
    kind = world.prompt_kind(concurrency_limit=1)
    ready("ticket.triage", 5)
    assert len(claim().tasks) == 1
    Kind.objects.filter(pk=kind.pk).update(concurrency_limit=None)
    assert len(claim().tasks) == 4


@pytest.mark.django_db(transaction=True)
def test_a_limit_in_other_hands_is_closed_and_the_rest_is_open(second_connection: psycopg.Connection) -> None:
    world.prompt_kind("a", concurrency_limit=5)
    world.handler_kind()
    ready("a", 1)
    claim()
    ready("a", 5)
    ready("refund.execute", 5)
    with second_connection.transaction():
        second_connection.execute("SELECT 1 FROM tasks_limit FOR UPDATE")
        taken = lifecycle.claim_batch(world.worker(), 50, ["refund"])
        assert (Counter(task.kind for task in taken.tasks), taken.busy) == (Counter({"refund.execute": 5}), True)
    assert Counter(task.kind for task in claim().tasks) == {"a": 4}


@pytest.mark.django_db(transaction=True)
def test_claims_at_once_never_exceed_a_limit() -> None:
    """Eight threads, each with a connection of its own, claim until all is full, then claim and end as they can."""
    provider = world.provider(max_concurrency=7)
    for name in ("a", "b"):
        world.prompt_kind(name, provider=provider, concurrency_limit=5)
        ready(name, 60)
    seen: list[int] = []
    failures: list[BaseException] = []
    full = threading.Event()

    def work() -> None:
        try:
            worker = world.worker()
            while Task.objects.exclude(status="succeeded").exists():
                tasks = lifecycle.claim(worker, 3, [])
                seen.append(_most_running())
                if seen[-1] == 7:
                    full.set()
                assert not tasks or full.wait(30)
                end(worker, tasks)
        except BaseException as error:
            failures.append(error)
            raise
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert max(seen) == 7


def _most_running() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM tasks_task WHERE status = 'running'")
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize(
    ("passed", "left", "second"),
    [
        (0, [4, 3, 2, 1], 100),
        (1, [0, 4, 3, 2], 101),
        (3, [0, 0, 0, 4], 103),
        (4, [0] * 4, 104),
        (-4, [4, 3, 2, 1], 100),
        (-5, [0] * 4, 95),
        (-3600, [0] * 4, -3500),
    ],
)
def test_the_window_turns(passed: int, left: list[int], second: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database clock that is set back by an hour does not keep the window full for one."""
    monkeypatch.setattr(limits, "WINDOW", 4)
    window = Window(100, [4, 3, 2, 1], [4, 3, 2, 1], 0.0)
    window.turn_to(100 + passed)
    assert (window.requests, window.tokens, window.second) == (left, left, second)


def test_the_average_follows_what_is_spent() -> None:
    window = Window(100, [0] * WINDOW, [0] * WINDOW, 0.0)
    window.spend(100, 1, 500)
    assert window.tokens_each == 500.0
    window.spend(99, 1, 1_500)
    assert window.tokens_each == pytest.approx(600.0)
    window.spend(100 - WINDOW, 1, 10)
    assert sum(window.requests) == 2


@pytest.mark.django_db
def test_nothing_is_locked_where_nothing_waits(django_assert_num_queries: Any) -> None:
    world.prompt_kind(concurrency_limit=1)
    Provider.objects.update(max_concurrency=1)
    assert limits.rooms() == limits.Rooms()
    with django_assert_num_queries(2):
        limits.rooms()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "resting",
    [
        {"held_at": timezone.now(), "hold_reason": "a person asked"},
        {"cooling_until": timezone.now() + timedelta(hours=1)},
    ],
    ids=["held", "cooling"],
)
def test_a_backlog_behind_a_provider_at_rest_makes_no_claim_count(resting: dict[str, Any]) -> None:
    """Each claim of each process would lock that provider's limit for as long as it is held."""
    kind = world.prompt_kind()
    lifecycle.submit_many(kind.name, [{"text": "a"}, {"text": "b"}])
    Provider.objects.update(max_concurrency=1, requests_per_minute=10, **resting)
    assert limits.rooms() == limits.Rooms()
    Provider.objects.update(held_at=None, cooling_until=None)
    assert list(limits.rooms().providers.values()) == [1]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("limit", [None, 5])
def test_only_a_claim_behind_a_limit_is_a_transaction(limit: int | None) -> None:
    """A process that is frozen in one keeps its tasks from the others until the session is ended."""
    world.prompt_kind(concurrency_limit=limit)
    ready("ticket.triage", 1)
    worker, seen = world.worker(), []

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "INSERT INTO tasks_attempt" in sql:
            seen.append(connection.in_atomic_block)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        assert len(claim(by=worker).tasks) == 1
    # The second takes it, after the first has seen that a limit stands before it.
    assert seen == ([False] if limit is None else [False, True])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("before", ["parked_at = now()", "priority = 0"])
def test_what_comes_behind_a_limit_after_the_count_waits_for_the_next(
    before: str, second_connection: psycopg.Connection
) -> None:
    """Nothing waited when the limits were looked at, or there was none yet; then there is, and the claim begins."""
    world.prompt_kind(concurrency_limit=1 if "parked" in before else None)
    world.handler_kind()
    ready("ticket.triage", 3)
    ready("refund.execute", 1)
    Task.objects.filter(kind="ticket.triage").update(parked_at=Now() if "parked" in before else None)
    changed: list[bool] = []

    def change(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "INSERT INTO tasks_attempt" in sql and not changed:
            changed.append(True)
            second_connection.execute("UPDATE tasks_task SET parked_at = NULL")
            second_connection.execute("UPDATE tasks_kind SET concurrency_limit = 1 WHERE name = 'ticket.triage'")
        return execute(sql, params, many, context)

    worker = world.worker()
    with connection.execute_wrapper(change):
        first = lifecycle.claim_batch(worker, 50, ["refund"], count_first=True)
    assert Counter(task.kind for task in first.tasks) == {"refund.execute": 1}
    second = lifecycle.claim_batch(worker, 50, ["refund"], count_first=False)
    assert Counter(task.kind for task in second.tasks) == {"ticket.triage": 1}
    assert second.counted


@pytest.mark.django_db
def test_the_more_urgent_goes_first_though_it_is_limited() -> None:
    world.prompt_kind(concurrency_limit=1)
    world.handler_kind()
    ready("refund.execute", 2)
    ready("ticket.triage", 2, priority=50)
    worker = world.worker()
    assert [task.kind for task in claim(1, by=worker).tasks] == ["ticket.triage"]
    assert [task.kind for task in claim(5, by=worker).tasks] == ["refund.execute"] * 2
