"""Unknown work whose handler can be asked: who asks, what the answers do, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.engine import lease
from tasks.lifecycle import Answer, Asked, FailureRecord
from tasks.lifecycle.reconcile import ASK, wait_seconds
from tasks.lifecycle.suspects import DEATHS
from tasks.lifecycle.unknown import FIRST_ASK_SECONDS, MAX_ASKS, NOBODY_SECONDS
from tasks.models import Kind, Task, TaskEvent, WorkerProcess
from tasks.states import Outcome, Truth
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db

WINDOW = 12.0
FAILED = FailureRecord(code="AI_UNKNOWN_ERROR", fingerprint="f" * 16, last_error="no route", failure={"title": "no"})


def vanish(worker: int, *, seen: bool = False) -> None:
    """The worker dies and is rescued from; ``seen``: under the eyes of its sentinel."""
    if seen:
        WorkerProcess.objects.filter(pk=worker).update(exit_seen_at=timezone.now())
    else:
        world.age("tasks_workerprocess", "lease_until", 3_600, f"id = {worker}")
    lifecycle.mark_lost(leases_count=True)
    lifecycle.rescue()


def unknown(count: int = 1, **kind: Any) -> tuple[int, list[Task]]:
    """Tasks whose worker vanished, and a live worker that can ask about them."""
    asker, gone = world.worker("refund"), world.worker("refund")
    rows = world.claimed(world.handler_kind(**kind), gone, count)
    vanish(gone)
    return asker, [world.stored(row.task_id) for row in rows]


def ask(worker: int, count: int = 10) -> list[Asked]:
    return lifecycle.ask(worker, count, ["refund"], WINDOW)


def answer(worker: int, asked: Asked, truth: Truth, **more: Any) -> bool:
    """Whether it was recorded."""
    stored = lifecycle.answer(worker, [Answer(asked, truth, **more)])
    assert stored.busy == set()
    assert stored.won ^ stored.refused == {asked.task_id}
    return asked.task_id in stored.won


def pass_by(seconds: float) -> None:
    """So much time passes for what waits to be asked."""
    world.age("tasks_task", "ask_after", seconds)


def last_event(task: Task) -> TaskEvent:
    return TaskEvent.objects.filter(task=task).latest("seq")


# --- who is asked -----------------------------------------------------------------------------------------------------


def test_an_unknown_task_waits_for_its_handler_to_be_asked() -> None:
    asker, (task,) = unknown()
    assert (task.status, task.asks) == ("unknown", 0)
    assert lifecycle.settle_unknown() == 0
    (asked,) = ask(asker)
    attempt = task.attempts.get()
    assert (asked.task_id, asked.attempt_id, asked.started_at) == (task.id, attempt.id, attempt.started_at)
    assert (asked.kind, asked.handler, asked.cycle, asked.asks) == ("refund.execute", "refund", 1, 1)
    assert (asked.payload_text, asked.process_ended) == ('{"text": "ticket 0"}', False)
    assert ask(world.worker("refund")) == [], "one at a time"
    assert lifecycle.settle_unknown() == 0
    assert not DeadLetter.objects.exists()


def test_only_who_knows_the_handler_and_holds_its_lease_asks() -> None:
    asker, _ = unknown()
    assert lifecycle.ask(asker, 10, ["other"], WINDOW) == []
    gone = world.worker("refund")
    vanish(gone)
    assert ask(gone) == []
    assert len(ask(asker)) == 1


def test_those_due_longest_are_asked_about_first_and_no_more_than_wanted() -> None:
    asker, tasks = unknown(3)
    world.age("tasks_task", "ask_after", 5, f"id = '{tasks[2].id}'")
    first = {asked.task_id for asked in ask(asker, 2)}
    assert (len(first), tasks[2].id in first) == (2, True)
    assert len(ask(asker, 2)) == 1


def test_a_kind_that_is_safe_to_rerun_is_not_asked_about() -> None:
    asker, (task,) = unknown(safe_to_rerun=True)
    assert (task.status, ask(asker)) == ("ready", [])


def test_a_kind_declared_safe_later_is_settled_without_more_questions() -> None:
    asker, (task,) = unknown()
    Kind.objects.update(safe_to_rerun=True)
    assert ask(asker) == []
    assert lifecycle.settle_unknown() == 1
    assert world.stored(task.id).status == "ready"


def test_an_interrupted_attempt_is_asked_about_once_its_process_is_gone() -> None:
    worker = world.worker("refund")
    (row,) = world.claimed(world.handler_kind(), worker)
    lifecycle.finish(
        worker, [lifecycle.End(task_id=row.task_id, attempt_id=row.attempt_id, outcome=Outcome.INTERRUPTED)]
    )
    assert lifecycle.settle_unknown() == 0
    assert ask(worker) == []
    lease.stop(worker)
    pass_by(FIRST_ASK_SECONDS)
    (asked,) = ask(world.worker("refund"))
    assert (asked.attempt_id, asked.process_ended) == (row.attempt_id, True)


def test_a_task_that_may_have_done_its_work_does_not_expire() -> None:
    asker, (task,) = unknown()
    Task.objects.update(expires_at=timezone.now() - timedelta(seconds=60))
    assert lifecycle.expire() == 0
    (asked,) = ask(asker)
    assert answer(asker, asked, Truth.NOT_DONE)
    assert lifecycle.expire() == 1
    assert world.stored(task.id).reason == "expired"


# --- what the answers do ----------------------------------------------------------------------------------------------


def test_done_is_a_success_with_its_result() -> None:
    asker, (task,) = unknown()
    (asked,) = ask(asker)
    assert answer(asker, asked, Truth.DONE, result_text='{"refund": "r-1"}')
    stored = world.stored(task.id)
    assert (stored.status, stored.result, stored.error_code, stored.asks, stored.ask_after) == (
        "succeeded", {"refund": "r-1"}, "", 0, None,
    )  # fmt: skip
    assert world.events(task.id)[-2:] == [("rescued", "running", "unknown"), ("reconciled", "unknown", "succeeded")]
    assert last_event(task).data == {"answer": "done", "asks": 1, "worker": asker}
    assert not answer(asker, asked, Truth.DONE), "only once"
    assert task.attempts.get().outcome == "lost"


@pytest.mark.parametrize("safe", [None, False])
def test_not_done_runs_again_whatever_the_kind_says(safe: bool | None) -> None:
    asker, (task,) = unknown(safe_to_rerun=safe)
    (asked,) = ask(asker)
    assert answer(asker, asked, Truth.NOT_DONE)
    assert world.events(task.id)[-1] == ("not_done", "unknown", "ready")
    (again,) = lifecycle.claim(asker, 1, ["refund"])
    assert (again.task_id, again.failures) == (task.id, 0)


def test_still_unknown_is_asked_again_with_growing_waits_and_not_for_ever() -> None:
    asker, (task,) = unknown()
    for number in range(1, MAX_ASKS):
        (asked,) = ask(asker)
        assert asked.asks == number
        assert answer(asker, asked, Truth.STILL_UNKNOWN, failed=FAILED)
        event = last_event(task)
        assert (event.type, event.attempt_id, event.data["delay_seconds"]) == (
            "asked", asked.attempt_id, wait_seconds(number),
        )  # fmt: skip
        assert event.data["error"] == "no route"
        pass_by(wait_seconds(number) - 0.9)
        assert ask(asker) == []
        pass_by(0.9)
    (asked,) = ask(asker)
    assert answer(asker, asked, Truth.STILL_UNKNOWN, failed=FAILED)
    letter = DeadLetter.objects.get()
    assert (world.stored(task.id).status, letter.reason, letter.error_code) == (
        "dead", "outcome_unknown", "AI_WORKER_LOST",
    )  # fmt: skip
    assert last_event(task).data["error"] == "no route"
    assert last_event(task).data["asks"] == MAX_ASKS


def test_the_waits_double_up_to_half_a_minute() -> None:
    assert [wait_seconds(number) for number in (1, 2, 3, 4, 5, 6, 7, 9)] == [1, 2, 4, 8, 16, 30, 30, 30]


def test_a_result_that_cannot_be_stored_is_a_death() -> None:
    asker, (task,) = unknown()
    (asked,) = ask(asker)
    assert answer(asker, asked, Truth.DONE, failed=FAILED)
    letter = DeadLetter.objects.get()
    assert (world.stored(task.id).status, letter.reason, letter.error_code) == (
        "dead",
        "unstorable",
        "AI_UNKNOWN_ERROR",
    )
    assert last_event(task).data["error"] == "no route"


def test_a_reprocessed_letter_begins_anew_and_may_recover_by_an_answer() -> None:
    asker, (task,) = unknown()
    Task.objects.update(asks=MAX_ASKS - 1)
    (asked,) = ask(asker)
    answer(asker, asked, Truth.STILL_UNKNOWN)
    lifecycle.reprocess([task.id], actor="ana")
    assert world.stored(task.id).asks == 0
    (row,) = lifecycle.claim(gone := world.worker("refund"), 1, ["refund"])
    vanish(gone)
    (asked,) = ask(asker)
    assert (asked.asks, asked.cycle, asked.attempt_id) == (1, 2, row.attempt_id)
    assert answer(asker, asked, Truth.DONE, result_text="1")
    assert DeadLetter.objects.get().state == "recovered"


# --- windows and the fence --------------------------------------------------------------------------------------------


def test_who_dies_while_asking_loses_nothing_and_answers_no_more() -> None:
    asker, (task,) = unknown()
    (first,) = ask(asker)
    pass_by(WINDOW)
    other = world.worker("refund")
    (second,) = ask(other)
    assert (second.asks, second.attempt_id) == (2, first.attempt_id)
    assert not answer(asker, first, Truth.NOT_DONE)
    assert world.stored(task.id).status == "unknown"
    assert last_event(task).type == "late_answer_refused"
    assert lifecycle.renew([first], WINDOW) == set()
    assert answer(other, second, Truth.DONE, result_text="null")


def test_a_window_that_is_renewed_does_not_end() -> None:
    asker, (task,) = unknown()
    (asked,) = ask(asker)
    pass_by(WINDOW - 1)
    assert lifecycle.renew([asked], WINDOW) == {task.id}
    pass_by(WINDOW - 1)
    assert ask(asker) == []


def test_the_last_question_whose_asker_died_is_not_asked_again() -> None:
    asker, (task,) = unknown()
    Task.objects.update(asks=MAX_ASKS - 1)
    ask(asker)
    assert lifecycle.settle_unknown() == 0, "it is under way"
    pass_by(WINDOW)
    assert ask(asker) == []
    assert lifecycle.settle_unknown() == 1
    assert (world.stored(task.id).reason, last_event(task).data["asks"]) == ("outcome_unknown", MAX_ASKS)


def test_an_answer_about_an_earlier_attempt_is_refused() -> None:
    """The same number of asks, and unknown again: only the attempt tells them apart."""
    asker, (task,) = unknown()
    (old,) = ask(asker)
    pass_by(WINDOW)
    (asked,) = ask(asker)
    answer(asker, asked, Truth.NOT_DONE)
    gone = world.worker("refund")
    lifecycle.claim(gone, 1, ["refund"])
    vanish(gone)
    (new,) = ask(asker)
    assert new.asks == old.asks
    assert not answer(asker, old, Truth.DONE, result_text='"stale"')
    assert world.stored(task.id).status == "unknown"
    assert answer(asker, new, Truth.DONE, result_text='"fresh"')
    assert world.stored(task.id).result == "fresh"


def test_a_person_may_cancel_at_any_time() -> None:
    asker, (task,) = unknown()
    (asked,) = ask(asker)
    assert lifecycle.cancel([task.id], actor="ana") == {task.id}
    assert not answer(asker, asked, Truth.DONE, result_text="1")
    stored = world.stored(task.id)
    assert (stored.status, stored.result) == ("cancelled", None)
    assert last_event(task).type == "late_answer_refused"


@pytest.mark.django_db(transaction=True)
def test_two_that_ask_at_once_share_the_tasks_and_none_waits(second_connection: psycopg.Connection) -> None:
    asker, tasks = unknown(5)
    other = world.worker("refund")
    second_connection.execute("SET lock_timeout = '1s'")
    params = {
        "worker": other, "count": 10, "handlers": ["refund"], "window": WINDOW,
        "max_asks": MAX_ASKS, "condemned": True,
    }  # fmt: skip
    with transaction.atomic():
        mine = {asked.task_id for asked in ask(asker, 3)}
        theirs = {row[0] for row in second_connection.execute(ASK, params).fetchall()}
    assert (len(mine), len(theirs)) == (3, 2)
    assert mine | theirs == {task.id for task in tasks}


@pytest.mark.django_db(transaction=True)
def test_a_row_that_somebody_holds_keeps_nobody_waiting(second_connection: psycopg.Connection) -> None:
    asker, tasks = unknown(2)
    first, second = ask(asker)
    with second_connection.transaction():
        second_connection.execute("SELECT 1 FROM tasks_task WHERE id = %s FOR UPDATE", [first.task_id])
        assert lifecycle.renew([first, second], WINDOW) == {task.id for task in tasks}
        stored = lifecycle.answer(asker, [Answer(one, Truth.NOT_DONE) for one in (first, second)])
    assert (stored.won, stored.busy, stored.refused) == ({second.task_id}, {first.task_id}, set())
    assert answer(asker, first, Truth.NOT_DONE)


# --- nobody to ask ----------------------------------------------------------------------------------------------------


def test_without_a_live_worker_it_waits_for_one_for_a_while() -> None:
    gone = world.worker("refund")
    (row,) = world.claimed(world.handler_kind(), gone)
    vanish(gone)
    pass_by(NOBODY_SECONDS - 5)
    assert lifecycle.settle_unknown() == 0
    assert world.stored(row.task_id).status == "unknown"
    pass_by(5)
    assert lifecycle.settle_unknown() == 1
    assert world.stored(row.task_id).reason == "outcome_unknown"


def test_a_worker_that_comes_back_late_still_asks() -> None:
    gone = world.worker("refund")
    world.claimed(world.handler_kind(), gone)
    vanish(gone)
    pass_by(NOBODY_SECONDS + 5)
    asker = world.worker("refund")
    assert lifecycle.settle_unknown() == 0
    assert len(ask(asker)) == 1


def test_a_process_that_could_ask_says_that_somebody_may_come() -> None:
    """The one that ran it did not know how; this one's code does."""
    gone = world.worker()
    (row,) = world.claimed(world.handler_kind(), gone)
    world.age("tasks_workerprocess", "lease_until", 3_600)
    lifecycle.mark_lost(leases_count=True)
    assert lifecycle.rescue(["refund"]) == 1
    assert lifecycle.settle_unknown(["refund"]) == 0
    assert world.stored(row.task_id).status == "unknown"
    assert lifecycle.settle_unknown() == 1
    assert world.stored(row.task_id).reason == "outcome_unknown"


def test_what_waits_keeps_no_other_from_being_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.lifecycle.unknown.BATCH", 1)
    asker, (waits,) = unknown()
    (row,) = world.claimed(world.prompt_kind(safe_to_rerun=False), asker)
    end = lifecycle.End(task_id=row.task_id, attempt_id=row.attempt_id, outcome=Outcome.INTERRUPTED)
    lifecycle.finish(asker, [end])
    assert lifecycle.settle_unknown() == 1
    assert (world.stored(waits.id).status, world.stored(row.task_id).status) == ("unknown", "dead")


def test_looking_for_whom_to_ask_reads_the_unknown_alone() -> None:
    world.handler_kind()
    lifecycle.submit_many("refund.execute", [{"n": n} for n in range(2_000)])
    params = {
        "worker": world.worker("refund"), "count": 10, "handlers": ["refund"], "window": WINDOW,
        "max_asks": MAX_ASKS, "condemned": True,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tasks_task")
        cursor.execute("EXPLAIN " + ASK, params)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    # Two indexes know the unknown by their status; which of them depends on how full the tests before left them.
    assert "task_unknown" in plan or "task_by_status" in plan, plan
    assert "Seq Scan on tasks_task" not in plan


# --- a task that is taken for the cause of the deaths of its processes ------------------------------------------------


def condemned(*reconcilers: str, **kind: Any) -> tuple[int, Task]:
    """A task that a third process died under, and a worker that can ask about it."""
    asker, gone = world.worker(*reconcilers), world.worker()
    (row,) = world.claimed(world.handler_kind(**kind), gone)
    Task.objects.update(rescues=DEATHS - 1)
    vanish(gone, seen=True)
    return asker, world.stored(row.task_id)


def die_seen(worker: int) -> None:
    vanish(worker, seen=True)


def end(task: Task) -> tuple[str, str]:
    """Status and reason."""
    stored = world.stored(task.id)
    return stored.status, stored.reason


def test_its_effect_may_have_happened_so_its_handler_is_asked() -> None:
    asker, task = condemned("refund")
    assert end(task) == ("unknown", "")
    assert lifecycle.settle_unknown() == 0
    (asked,) = ask(asker)
    assert answer(asker, asked, Truth.DONE, result_text='"paid"')
    assert end(task) == ("succeeded", "")
    assert world.events(task.id)[2:] == [
        ("rescued", "running", "unknown"), ("asking", "", ""), ("reconciled", "unknown", "succeeded"),
    ]  # fmt: skip


def test_what_it_has_not_done_it_does_not_do_any_more() -> None:
    asker, task = condemned("refund")
    assert answer(asker, ask(asker)[0], Truth.NOT_DONE)
    assert end(task) == ("dead", "lease_expired")
    assert last_event(task).data == {"reason": "lease_expired", "asks": 1, "answer": "not_done", "worker": asker}
    assert DeadLetter.objects.get().reason == "lease_expired"


def test_of_which_nobody_can_tell_its_outcome_is_unknown() -> None:
    asker, task = condemned("refund")
    for number in range(1, MAX_ASKS + 1):
        (asked,) = ask(asker)
        assert (asked.asks, end(task)[0]) == (number, "unknown")
        assert answer(asker, asked, Truth.STILL_UNKNOWN)
        pass_by(60)
    assert end(task) == ("dead", "outcome_unknown")


@pytest.mark.parametrize(
    ("reconcilers", "kind"), [([], {}), (["refund"], {"safe_to_rerun": True})], ids=["nobody", "safe"]
)
def test_where_nobody_is_asked_it_dies_at_once(reconcilers: list[str], kind: dict[str, Any]) -> None:
    asker, task = condemned(*reconcilers, **kind)
    assert (end(task), ask(asker)) == (("dead", "lease_expired"), [])


def test_it_does_not_run_again_where_its_kind_is_declared_safe_later() -> None:
    asker, task = condemned("refund")
    Kind.objects.update(safe_to_rerun=True)
    assert (ask(asker), lifecycle.settle_unknown()) == ([], 1)
    assert end(task) == ("dead", "lease_expired")


def test_it_can_be_cancelled() -> None:
    _, task = condemned("refund")
    assert lifecycle.cancel([task.id], actor="ana") == {task.id}
    assert end(task) == ("cancelled", "")


def test_asking_about_it_costs_one_process_at_the_most() -> None:
    asker, task = condemned("refund")
    other = world.worker("refund")
    assert len(ask(asker)) == 1
    die_seen(asker)
    pass_by(WINDOW + 1)
    assert ask(other) == []
    assert lifecycle.settle_unknown() == 1
    assert end(task) == ("dead", "lease_expired")
    assert last_event(task).data == {"reason": "lease_expired", "asks": 1}


def test_asking_about_it_condemns_no_other() -> None:
    """One at a time in a process: its death while it asks is the end of what it asks about."""
    asker, task = condemned("refund")
    other, gone = world.worker("refund"), world.worker()
    (row, usual) = world.claimed(Kind.objects.get(), gone, 2)
    Task.objects.filter(pk=row.task_id).update(rescues=DEATHS - 1)
    for column in ("exit_seen_at", "lost_at"):
        world.age("tasks_workerprocess", column, 3_600)
    vanish(gone, seen=True)
    assert {asked.task_id for asked in ask(asker)} == {task.id, usual.task_id}
    assert lifecycle.ask(asker, 10, ["refund"], WINDOW, condemned=False) == []
    die_seen(asker)
    pass_by(WINDOW + 1)
    assert lifecycle.settle_unknown() == 1
    assert end(task) == ("dead", "lease_expired")
    assert row.task_id in {asked.task_id for asked in ask(other)}


def test_a_process_that_is_lost_unseen_while_it_asks_proves_nothing() -> None:
    """A killed tree, a host that is gone: the next one asks, and what the first one's death tells later is old."""
    asker, task = condemned("refund")
    other = world.worker("refund")
    assert len(ask(asker)) == 1
    vanish(asker)
    pass_by(WINDOW + 1)
    (asked,) = ask(other)
    WorkerProcess.objects.filter(pk=asker).update(exit_seen_at=timezone.now())
    assert lifecycle.settle_unknown() == 0
    assert answer(other, asked, Truth.DONE, result_text="1")
    assert end(task) == ("succeeded", "")


def test_nor_does_one_that_dies_after_it_has_answered() -> None:
    asker, task = condemned("refund")
    other = world.worker("refund")
    assert answer(asker, ask(asker)[0], Truth.STILL_UNKNOWN)
    die_seen(asker)
    pass_by(60)
    assert lifecycle.settle_unknown() == 0
    assert answer(other, ask(other)[0], Truth.DONE, result_text="1")
    assert end(task) == ("succeeded", "")


def test_reprocessed_by_a_person_it_begins_anew() -> None:
    """What it was condemned for in an earlier cycle is over."""
    asker, task = condemned("refund")
    assert answer(asker, ask(asker)[0], Truth.NOT_DONE)
    assert lifecycle.reprocess([task.id], actor="ana") == {task.id}
    again = world.worker("refund")
    assert len(lifecycle.claim(again, 1, ["refund"])) == 1
    vanish(again)
    assert answer(asker, ask(asker)[0], Truth.NOT_DONE)
    assert end(task) == ("ready", "")
