"""What a real cluster does with running work: handlers of a user's app, cancels, waits, poison."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.models import Attempt, Kind, Provider, TaskEvent, WorkerProcess
from tests.chat import chat, chunk, error, stream
from tests.cluster import BUSY_MACHINE, QCluster, wait_until
from tests.provider import ScriptedProvider
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)

WORKSHOP = "tests.tasks.engine.workshop"


def test_handlers_of_a_users_app(test_database_url: str, tmp_path: Path) -> None:
    """Async, sync, progress, a failure of its own; and a handler that nobody has waits and harms nobody."""
    for name in ("measure", "saw", "sell", "weld"):
        Kind.objects.create(name=name, handler=f"workshop.{name}", max_attempts=1)
    until = tmp_path / "until"
    with QCluster(test_database_url, REDRIVE_APPS=WORKSHOP, REDRIVE_WORKERS=1) as cluster:
        cluster.wait_ready()
        measured = lifecycle.submit("measure", {"until": str(until)}, tags=["oak"])
        sawn = lifecycle.submit("saw", {"length": 5})
        sold = lifecycle.submit("sell", {"opens": "May"})
        welded = lifecycle.submit("weld", {})
        wait_until(lambda: world.stored(measured.id).progress, "the progress shown")
        assert world.stored(measured.id).progress == {"step": 3, "total": 7, "text": "measuring � twice"}
        wait_until(lambda: world.stored(sold.id).status == "dead", "the death of what was not sold")
        wait_until(lambda: world.stored(sawn.id).status == "succeeded", "the sawing")
        until.touch()
        wait_until(lambda: world.stored(measured.id).status == "succeeded", "the measuring")
    assert world.stored(measured.id).result == {"thread": "MainThread", "cycle": 1, "tags": ["oak"]}
    sawn_result = world.stored(sawn.id).result
    assert sawn_result["length"] == 2.5
    assert sawn_result["thread"].startswith("handler")
    assert (world.stored(welded.id).status, Attempt.objects.filter(task=welded).count()) == ("ready", 0)
    letter = DeadLetter.objects.get()
    assert (letter.task_id, letter.error_code, letter.attempts) == (sold.id, "AI_UNKNOWN_ERROR", 1)
    assert "workshop.handlers.ShopClosed: closed until May, password=[masked]" in letter.last_error
    traceback = letter.failure["traceback"]
    assert "tests/tasks/engine/workshop/handlers.py" in traceback
    assert "in _look_at_the_door" in traceback
    assert "hunter2" not in traceback


def test_a_cancel_aborts_the_call_within_about_a_second(test_database_url: str) -> None:
    with ScriptedProvider() as provider, QCluster(test_database_url, REDRIVE_WORKERS=1) as cluster:
        cluster.wait_ready()
        endless = stream([chunk("a word")], done=False, end="hang")
        provider.script(lambda request, n: endless)
        world.prompt_kind(provider=Provider.objects.create(name="p", base_url=provider.base_url))
        task = lifecycle.submit("ticket.triage", {"text": "no longer wanted"})
        (call,) = provider.wait_for(1)
        asked_at = time.monotonic()
        assert lifecycle.cancel([task.id], actor="ana") == {task.id}
        assert call.wait_closed() - asked_at < 3 + BUSY_MACHINE
        wait_until(lambda: world.stored(task.id).status == "cancelled", "the task cancelled", 5)
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.counted) == ("cancelled", False)
    assert attempt.calls.get().answer == "a word"
    assert [kind for kind, *_ in world.events(task.id)] == ["submitted", "claimed", "cancel_requested", "cancelled"]
    assert len(provider.requests) == 1


def test_waits_are_kept_and_end_without_notices(test_database_url: str) -> None:
    """NOTIFY off: polling finds new work and due retries; a retry starts within about a second of its time."""
    with (
        ScriptedProvider() as provider,
        QCluster(test_database_url, REDRIVE_NOTIFY="off", REDRIVE_WORKERS=1) as cluster,
    ):
        cluster.wait_ready()
        provider.script(lambda request, n: error(500, "busy") if n <= 2 else chat(request, "third time lucky"))
        world.prompt_kind(provider=Provider.objects.create(name="p", base_url=provider.base_url))
        submitted_at = time.monotonic()
        task = lifecycle.submit("ticket.triage", {"text": "try"})
        (first,) = provider.wait_for(1)
        assert first.at - submitted_at < 3 + BUSY_MACHINE
        wait_until(lambda: world.stored(task.id).status == "succeeded", "the third attempt", 20)
    assert world.stored(task.id).result == "third time lucky"
    first_try, second_try, third_try = Attempt.objects.order_by("id")
    waits = [
        (later.started_at - earlier.finished_at).total_seconds()
        for earlier, later in ((first_try, second_try), (second_try, third_try))
    ]
    assert 1.0 <= waits[0] < 1.0 + 2.5 + BUSY_MACHINE
    assert 2.0 <= waits[1] < 2.0 + 2.5 + BUSY_MACHINE
    due = TaskEvent.objects.filter(task=task, type="due").values_list("at", flat=True)
    claimed = [second_try.started_at, third_try.started_at]
    assert all((start - at).total_seconds() < 2.0 + BUSY_MACHINE for at, start in zip(due, claimed, strict=True))


def test_a_poison_task_dies_after_three_processes_and_takes_nobody_with_it(test_database_url: str) -> None:
    """Its neighbours lose at most two attempts with it: the third process that it kills holds no other suspect."""
    Kind.objects.create(name="burn", handler="workshop.burn", safe_to_rerun=True)
    with QCluster(test_database_url, REDRIVE_APPS=WORKSHOP, REDRIVE_WORKERS=1, REDRIVE_SLOTS=6) as cluster:
        cluster.wait_ready()
        poison, *innocent = lifecycle.submit_many("burn", [{"poison": True}, *[{"seconds": 0.6}] * 5])
        wait_until(lambda: world.stored(poison.id).status == "dead", "the end of the poison", 60)
        wait_until(
            lambda: all(world.stored(task.id).status == "succeeded" for task in innocent), "the innocent tasks", 60
        )
    letter = DeadLetter.objects.get()
    assert (letter.task_id, letter.reason, letter.error_code) == (poison.id, "lease_expired", "AI_WORKER_LOST")
    assert letter.attempts == 0
    assert Counter(Attempt.objects.filter(task=poison).values_list("outcome", "counted")) == {("lost", False): 3}
    assert WorkerProcess.objects.filter(role="worker", exit_code=-9).count() == 3
    assert all(world.stored(task.id).rescues <= 2 for task in innocent)
    assert max(world.stored(task.id).rescues for task in innocent) == 2, "they were beside it twice"
