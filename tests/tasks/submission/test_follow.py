"""Following tasks: what counts as over, with reads of bounded size."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import DjangoAssertNumQueries

from tasks import lifecycle
from tasks.models import Kind, Task
from tasks.states import Status
from tasks.submission import follow
from tasks.submission.follow import Follower, someone_runs
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db


def submitted(count: int) -> list[Task]:
    return lifecycle.submit_many("ticket.triage", list(range(count)))


def test_nothing_to_follow_is_over() -> None:
    follower = Follower([])
    follower.look()
    assert (follower.over, follower.failed, follower.summary()) == (True, False, "0 tasks: none")


def test_it_is_over_when_the_last_one_ended() -> None:
    world.prompt_kind()
    tasks = submitted(3)
    follower = Follower(task.pk for task in tasks)
    assert not follower.over
    lifecycle.cancel([task.pk for task in tasks[:2]], actor="ana")
    follower.look()
    assert (follower.over, follower.summary()) == (False, "3 tasks: 2 cancelled, 1 not ended")
    lifecycle.cancel([tasks[2].pk], actor="ana")
    follower.look()
    assert (follower.over, follower.failed, follower.ended) == (True, False, {Status.CANCELLED: 3})


def test_held_back_may_be_undone_before_the_end() -> None:
    world.prompt_kind()
    tasks = submitted(2)
    follower = Follower(task.pk for task in tasks)
    lifecycle.pause_kind("ticket.triage", by="ana", reason="looking")
    follower.look()
    assert (follower.over, follower.failed) == (True, True)
    lifecycle.resume_kind("ticket.triage", by="ana")
    follower.look()
    assert (follower.over, follower.failed) == (False, False)


def test_a_task_whose_row_is_gone_is_no_reason_to_wait() -> None:
    world.prompt_kind()
    (task,) = submitted(1)
    follower = Follower([task.pk])
    task.events.all().delete()
    task.delete()
    follower.look()
    assert (follower.over, follower.summary()) == (True, "1 task: 1 deleted")


def test_the_most_frequent_causes_of_death_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "CODES_TOLD", 2)
    kind = world.prompt_kind()
    worker = world.worker()
    rows = world.claimed(kind, worker, 6)
    codes = ["AI_CONFIG_INVALID", "AI_UPSTREAM_5XX", "AI_TIMEOUT", "AI_UPSTREAM_5XX"]
    codes += ["AI_CONFIG_INVALID", "AI_AUTH_FAILED"]
    lifecycle.finish(
        worker,
        [world.failed(row, "die", code, reason="not_retryable") for row, code in zip(rows, codes, strict=True)],
    )
    follower = Follower(row.task_id for row in rows)
    follower.look()
    assert follower.summary() == "6 tasks: 6 dead (AI_CONFIG_INVALID: 2, AI_UPSTREAM_5XX: 2, others: 2)"


def test_many_tasks_are_read_in_turns(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    monkeypatch.setattr(follow, "CHUNK", 2)
    monkeypatch.setattr(follow, "CHUNKS_A_LOOK", 3)
    world.prompt_kind()
    tasks = submitted(13)
    follower = Follower(task.pk for task in tasks)
    lifecycle.cancel([task.pk for task in tasks], actor="ana")
    ended = []
    for _ in range(3):
        with django_assert_num_queries(1 if len(ended) == 2 else 3):
            follower.look()
        ended.append(follower.ended.total())
    assert ended == [6, 12, 13]
    assert follower.over


def test_who_runs_a_kind() -> None:
    world.prompt_kind()
    world.handler_kind()
    assert not someone_runs("ticket.triage")
    world.worker()
    assert someone_runs("ticket.triage")
    assert someone_runs("refund.execute")  # by its handler, which the worker knows
    Kind.objects.create(name="elsewhere", handler="elsewhere")
    assert not someone_runs("elsewhere")
    world.age("tasks_workerprocess", "lease_until", 3600)
    assert not someone_runs("ticket.triage")
