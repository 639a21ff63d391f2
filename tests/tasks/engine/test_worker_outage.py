"""The database goes away while tasks run, and a worker freezes: each result is saved once, no call is made in vain."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection

from tasks import lifecycle
from tasks.models import Attempt, Provider, Task, TaskEvent, WorkerProcess
from tests.chat import chat
from tests.cluster import QCluster, end_sessions, wait_until
from tests.drills.rig import Rig
from tests.provider import Reply, ScriptedProvider
from tests.tasks.engine.bench import successes_refused
from tests.tasks.lifecycle import world

LEASE = 3.0


def calls_under_way(rig: Rig, count: int) -> None:
    """Wait until the provider has been asked so often in all."""
    wait_until(lambda: len([call for call in rig.calls() if call.event == "request"]) >= count, f"{count} calls")


def test_a_restart_of_the_database_loses_and_repeats_nothing() -> None:
    """Stopped as by a crash while 20 calls run: for less than a lease, then for longer than one."""
    with Rig(path="/delay/1500-2500", REDRIVE_LEASE_SECONDS=LEASE, REDRIVE_SLOTS=10, REDRIVE_WORKERS=2) as rig:
        rig.submit(20)
        calls_under_way(rig, 20)
        rig.server.restart("immediate")
        rig.wait_settled(30)
        rig.submit(20)
        calls_under_way(rig, 40)
        rig.server.stop("immediate")
        time.sleep(LEASE * 1.5)  # the outage: longer than a lease is what it is about
        rig.server.start()
        rig.wait_settled(30)
        ends = rig.sql("SELECT status, count(*) FROM tasks_task GROUP BY 1")
        attempts = rig.sql("SELECT outcome, count(*) FROM tasks_attempt GROUP BY 1")
        saves = rig.sql("SELECT count(*) FROM tasks_taskevent WHERE type = 'succeeded'")
        lost = rig.sql("SELECT count(*) FROM tasks_workerprocess WHERE lost_at IS NOT NULL AND role = 'worker'")
        asked = Counter(call.task for call in rig.calls() if call.event == "request")
        rig.unmanage()
        rig.cluster.terminate()
        assert rig.cluster.wait() == 0
        assert rig.restarts == 0
    assert ends == [("succeeded", 40)]
    assert attempts == [("succeeded", 40)]
    assert (saves, lost) == ([(40,)], [(0,)])
    assert (len(asked), set(asked.values())) == (40, {1})


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as scripted:
        yield scripted


@pytest.mark.django_db(transaction=True)
def test_sessions_ended_again_and_again_lose_and_repeat_nothing(
    test_database_url: str, provider: ScriptedProvider, second_connection: psycopg.Connection
) -> None:
    provider.script(lambda request, n: chat(request, f"answer {n}", delay=0.2 + 0.1 * n))
    world.prompt_kind(provider=Provider.objects.create(name="p", base_url=provider.base_url))
    connection.ensure_connection()
    spared = [second_connection.info.backend_pid, connection.connection.info.backend_pid]
    with QCluster(test_database_url) as cluster:
        cluster.wait_ready()
        lifecycle.submit_many("ticket.triage", [{"text": f"{n}"} for n in range(20)])
        ended = 0
        while Task.objects.exclude(status="succeeded").exists():
            ended += end_sessions(second_connection, spared)
            provider.wait_for(1)
            time.sleep(0.35)  # the pace of the trouble, not a wait for anything
        cluster.terminate()
        assert cluster.wait() == 0
    assert ended > 10
    assert len(provider.requests) == 20
    assert Task.objects.filter(status="succeeded").count() == 20
    assert Attempt.objects.filter(outcome="succeeded").count() == 20
    assert not Attempt.objects.exclude(outcome__in=["succeeded", "interrupted"]).exists()
    assert sorted(Task.objects.values_list("result", flat=True)) == sorted(f"answer {n}" for n in range(1, 21))
    assert not WorkerProcess.objects.exclude(lost_at=None).exists()


@pytest.mark.django_db(transaction=True)
def test_nothing_more_is_claimed_while_what_has_ended_cannot_be_stored(
    test_database_url: str, provider: ScriptedProvider, second_connection: psycopg.Connection, tmp_path: Path
) -> None:
    """Calls would be paid for whose answers pile up. Once it can be stored, it is, and the rest is run."""
    provider.script(lambda request, n: chat(request, "done"))
    world.prompt_kind(provider=Provider.objects.create(name="p", base_url=provider.base_url))
    said = tmp_path / "said"
    with QCluster(test_database_url, log=said, REDRIVE_WORKERS=1, REDRIVE_SLOTS=2) as cluster:
        cluster.wait_ready()
        lifecycle.pause_kind("ticket.triage", by="ana", reason="not yet")
        tasks = lifecycle.submit_many("ticket.triage", [{"text": f"{n}"} for n in range(10)])
        with successes_refused(second_connection, [task.id for task in tasks]):
            lifecycle.resume_kind("ticket.triage", by="ana")
            wait_until(lambda: said.read_text().count("it is tried again") >= 8, "each of four ends tried twice")
            assert len(provider.requests) == 4, "two for the slots, two that wait behind them"
        wait_until(lambda: not Task.objects.exclude(status="succeeded").exists(), "all stored")
    assert len(provider.requests) == 10


def late_value(request: Any, n: int) -> Reply:
    """The first two calls: one is answered, one hangs; those that run again get another answer."""
    if n > 2:
        return chat(request, "the second answer")
    return chat(request, "the late value", delay=0.7) if "value" in str(request) else Reply(status=None, end="hang")


def late_ends() -> set[tuple[UUID, str]]:
    """(task, outcome) of each end that was refused."""
    found = TaskEvent.objects.filter(type="late_save_refused")
    return {(event.task_id, event.data["outcome"]) for event in found}


@pytest.mark.django_db(transaction=True)
def test_a_frozen_worker_loses_its_tasks_and_its_late_ends(
    test_database_url: str, provider: ScriptedProvider, second_connection: psycopg.Connection, tmp_path: Path
) -> None:
    """One of its two answers has come and waits to be saved when it freezes: that value, too, comes too late."""
    settings = {"REDRIVE_WORKERS": 1, "REDRIVE_LEASE_SECONDS": LEASE, "REDRIVE_WATCHDOG_SECONDS": 60}
    said = tmp_path / "said"
    provider.script(late_value)
    world.prompt_kind(provider=Provider.objects.create(name="p", base_url=provider.base_url))
    with QCluster(test_database_url, log=said, **settings) as first:
        first.wait_ready()
        (frozen,) = first.worker_pids()
        valued, hanging = lifecycle.submit_many("ticket.triage", [{"text": "value"}, {"text": "hang"}])
        provider.wait_for(2)
        with second_connection.transaction():
            second_connection.execute("SELECT 1 FROM tasks_task WHERE id = %s FOR UPDATE", [valued.id])
            wait_until(lambda: "another transaction holds its task" in said.read_text(), "a value that waits")
            os.kill(frozen, signal.SIGSTOP)
        with QCluster(test_database_url, **settings) as second:
            wait_until(lambda: not Task.objects.exclude(status="succeeded").exists(), "both run elsewhere", 30)
            second.terminate()
            assert second.wait() == 0
        os.kill(frozen, signal.SIGCONT)
        wait_until(lambda: late_ends() == {(valued.id, "succeeded"), (hanging.id, "interrupted")}, "both refused")
        probe = lifecycle.submit("ticket.triage", {"text": "after the thaw"})
        wait_until(lambda: world.stored(probe.id).status == "succeeded", "new work done by it", 15)
    old, new = WorkerProcess.objects.filter(pid=frozen).order_by("id")
    assert Attempt.objects.get(task=probe).worker == new
    assert (old.late_saves_refused, old.exit_code) == (2, None)
    assert old.lost_at is not None
    assert set(Attempt.objects.filter(worker=old).values_list("outcome", "counted")) == {("lost", False)}
    assert {world.stored(task.id).result for task in (valued, hanging)} == {"the second answer"}
    assert len(provider.requests) == 5
