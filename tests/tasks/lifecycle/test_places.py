"""A provider that only a handler names: its limits hold for those calls, too."""

from __future__ import annotations

import threading

import psycopg
import pytest
from django.db import connection

from tasks import lifecycle
from tasks.lifecycle import Claimed, Full, Place, clear_places, take_place
from tasks.lifecycle.places import CLEAR, WAITS_SECONDS
from tasks.models import LimitPlace
from tasks.models.limit import Limit
from tests.tasks.lifecycle import world
from tests.tasks.lifecycle.test_limits import claim, end, ready

TAKEN = Place(taken=True)


def handlers(count: int) -> tuple[int, list[Claimed]]:
    """Running attempts of a kind without a provider, and their worker."""
    worker = world.worker()
    return worker, world.claimed(world.handler_kind(), worker, count)


@pytest.mark.django_db
def test_a_place_counts_beside_those_of_claims() -> None:
    world.prompt_kind(provider=world.provider(max_concurrency=2))
    worker, (one, two) = handlers(2)
    ready("ticket.triage", 5)
    assert len(claim(1).tasks) == 1
    assert take_place(one.attempt_id, "p") == TAKEN
    assert take_place(one.attempt_id, "p") == TAKEN, "it has its place"
    assert take_place(two.attempt_id, "p") == Place(taken=False, full=Full("running", 2, 2))
    assert claim().tasks == []
    assert lifecycle.fullness().providers == {"p": Full("running", 2, 2)}
    end(worker, [one], world.a_call())
    assert take_place(two.attempt_id, "p") == TAKEN
    assert LimitPlace.objects.get().attempt_id == two.attempt_id


@pytest.mark.django_db
def test_a_place_counts_one_request_and_its_end_the_others() -> None:
    world.prompt_kind(provider=world.provider(requests_per_minute=5))
    worker, (one, two) = handlers(2)
    assert take_place(one.attempt_id, "p") == TAKEN
    end(worker, [one], world.a_call(), world.a_call(), world.a_call())
    ready("ticket.triage", 9)
    assert len(claim().tasks) == 2
    assert take_place(two.attempt_id, "p") == Place(taken=False, full=Full("requests", 5, 5))


@pytest.mark.django_db
def test_a_look_in_vain_forgets_nothing_that_was_spent() -> None:
    world.provider(requests_per_minute=3)
    worker, (one, two) = handlers(2)
    take_place(one.attempt_id, "p")
    end(worker, [one], world.a_call(), world.a_call(), world.a_call())
    used_up = Place(taken=False, full=Full("requests", 3, 3))
    assert [take_place(two.attempt_id, "p") for _ in range(2)] == [used_up, used_up]


@pytest.mark.django_db
def test_a_backlog_and_those_who_wait_for_a_place_take_turns() -> None:
    """Whichever of the two is the quicker to see that a place is free."""
    world.prompt_kind(provider=world.provider(max_concurrency=1))
    worker, (one, two) = handlers(2)
    ready("ticket.triage", 5)
    (claimed,) = claim(by=worker).tasks
    used_up = Place(taken=False, full=Full("running", 1, 1))
    assert take_place(one.attempt_id, "p") == take_place(two.attempt_id, "p") == used_up
    end(worker, [claimed])
    assert claim().tasks == []
    assert lifecycle.fullness().providers == {}, "who waits uses nothing up"
    assert take_place(one.attempt_id, "p") == TAKEN
    end(worker, [one])
    (claimed,) = claim(by=worker).tasks
    end(worker, [claimed])
    assert claim().tasks == []
    assert take_place(two.attempt_id, "p") == TAKEN


@pytest.mark.django_db
@pytest.mark.parametrize("why", ["its process is silent", "it has ended"])
def test_who_waits_no_more_keeps_no_room(why: str) -> None:
    world.prompt_kind(provider=world.provider(max_concurrency=1))
    worker, (one,) = handlers(1)
    ready("ticket.triage", 5)
    (claimed,) = claim(by=worker).tasks
    take_place(one.attempt_id, "p")
    end(worker, [claimed])
    assert claim().tasks == []
    if why == "it has ended":
        end(worker, [one])
    else:
        world.age("tasks_limitplace", "waits_until", WAITS_SECONDS)
    assert len(claim().tasks) == 1


@pytest.mark.django_db
def test_what_a_place_is_taken_to_spend_and_has_spent() -> None:
    world.provider(tokens_per_minute=1_500)
    worker, (one, two) = handlers(2)
    assert take_place(one.attempt_id, "p") == TAKEN
    assert take_place(two.attempt_id, "p") == Place(taken=False, full=Full("tokens", 0, 1_500))
    end(worker, [one], world.a_call(tokens=100))
    assert take_place(two.attempt_id, "p") == TAKEN


@pytest.mark.django_db
def test_where_nothing_is_limited_nothing_is_kept() -> None:
    world.provider()
    _, (one,) = handlers(1)
    assert take_place(one.attempt_id, "p") == take_place(one.attempt_id, "nobody") == TAKEN
    assert not LimitPlace.objects.exists()


@pytest.mark.django_db
def test_an_attempt_that_has_ended_gets_none() -> None:
    world.provider(max_concurrency=1)
    worker, (one, two) = handlers(2)
    end(worker, [one])
    take_place(one.attempt_id, "p")
    assert not LimitPlace.objects.exists()
    assert take_place(two.attempt_id, "p") == TAKEN


@pytest.mark.django_db
def test_places_of_ended_attempts_are_cleared_away() -> None:
    world.provider(max_concurrency=5)
    worker, (one, two) = handlers(2)
    for row in (one, two):
        take_place(row.attempt_id, "p")
    end(worker, [one])
    assert (clear_places(), clear_places()) == (1, 0)
    assert LimitPlace.objects.get().attempt_id == two.attempt_id


@pytest.mark.django_db
def test_a_look_in_vain_clears_nothing_away() -> None:
    """It is repeated by everybody who waits."""
    world.provider(max_concurrency=1)
    worker, (one, two, three) = handlers(3)
    take_place(one.attempt_id, "p")
    end(worker, [one])
    LimitPlace.objects.create(attempt_id=two.attempt_id, provider="p")
    assert take_place(three.attempt_id, "p") == Place(taken=False, full=Full("running", 1, 1))
    assert LimitPlace.objects.filter(waits_until=None).count() == 2
    end(worker, [two])
    assert take_place(three.attempt_id, "p") == TAKEN
    assert LimitPlace.objects.get().attempt_id == three.attempt_id


@pytest.mark.django_db
def test_no_more_are_cleared_away_than_were_asked_for() -> None:
    """By the plans of a worker's connection, which know no hash join."""
    LimitPlace.objects.bulk_create(LimitPlace(attempt_id=number, provider="p") for number in range(50))
    with connection.cursor() as cursor:
        for join in ("hashjoin", "mergejoin", "hashagg", "sort", "material"):
            cursor.execute(f"SET LOCAL enable_{join} = off")
        cursor.execute("EXPLAIN " + CLEAR, [3])
        assert "CTE ended" in str(cursor.fetchall())
    assert clear_places(3) == 3


@pytest.mark.django_db(transaction=True)
def test_a_limit_that_another_holds_is_not_waited_for(second_connection: psycopg.Connection) -> None:
    world.provider(max_concurrency=1)
    _, (one,) = handlers(1)
    Limit.objects.create(scope="provider", name="p")
    with second_connection.transaction():
        second_connection.execute("SELECT 1 FROM tasks_limit FOR UPDATE")
        assert take_place(one.attempt_id, "p") == Place(taken=False)
    assert take_place(one.attempt_id, "p") == TAKEN


@pytest.mark.django_db(transaction=True)
def test_those_who_take_at_once_take_no_more_than_there_is() -> None:
    world.provider(max_concurrency=3)
    _, rows = handlers(12)
    start = threading.Barrier(len(rows))

    def take(row: Claimed) -> None:
        start.wait()
        try:
            while take_place(row.attempt_id, "p") == Place(taken=False):
                continue
        finally:
            connection.close()

    threads = [threading.Thread(target=take, args=[row]) for row in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert LimitPlace.objects.filter(waits_until=None).count() == 3
