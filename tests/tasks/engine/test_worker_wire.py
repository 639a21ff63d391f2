"""Answers of the database that never arrive, or arrive too late: what was committed is neither lost nor done twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import transaction

from tasks import lifecycle
from tasks.models import Attempt, Kind, Provider, Task, WorkerProcess
from tests.chat import chat
from tests.cluster import QCluster, wait_until
from tests.provider import ScriptedProvider
from tests.tasks.engine.wire import Wire
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)

#: What only these statements contain: a claim, and the save of an end followed by its commit.
CLAIM = ("INSERT INTO tasks_attempt",)
SAVE = ("UPDATE tasks_attempt a SET", "COMMIT")
SETTINGS = {"REDRIVE_WORKERS": 1, "REDRIVE_LEASE_SECONDS": 20, "REDRIVE_APPS": "tests.tasks.engine.workshop"}


@pytest.fixture
def wire(test_database_url: str) -> Iterator[Wire]:
    with Wire(test_database_url) as through:
        yield through


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as scripted:
        scripted.script(lambda request, n: chat(request, "done"))
        world.prompt_kind(provider=Provider.objects.create(name="p", base_url=scripted.base_url))
        yield scripted


def all_succeeded() -> bool:
    return not Task.objects.exclude(status="succeeded").exists()


def outcomes() -> Counter[tuple[str, bool]]:
    return Counter(Attempt.objects.values_list("outcome", "counted"))


def test_a_claim_that_was_never_confirmed_is_handed_back_and_runs(wire: Wire, provider: ScriptedProvider) -> None:
    """Also of a kind that is not safe to rerun, since nothing had begun; and long before any lease runs out."""
    Kind.objects.create(name="saw", handler="workshop.saw", safe_to_rerun=False)
    with QCluster(wire.url, **SETTINGS) as cluster:
        cluster.wait_ready()
        with wire.cut(*CLAIM) as trap:
            with transaction.atomic():
                tasks = lifecycle.submit_many("ticket.triage", [{"text": "x"}] * 3)
                tasks += lifecycle.submit_many("saw", [{"length": 2}])
            trap.wait()
        wait_until(all_succeeded, "all done", 10)
    assert outcomes() == {("interrupted", False): 4, ("succeeded", True): 4}
    assert len(provider.requests) == 3
    steps = ["submitted", "claimed", "interrupted", "claimed", "succeeded"]
    assert [[kind for kind, *_ in world.events(task.id)] for task in tasks] == [steps] * 4


def test_a_plain_success_that_was_never_confirmed_is_not_stored_twice(wire: Wire) -> None:
    """It is one statement, without a transaction around it."""
    Kind.objects.create(name="saw", handler="workshop.saw", safe_to_rerun=False)
    with QCluster(wire.url, **SETTINGS) as cluster:
        cluster.wait_ready()
        with wire.cut(SAVE[0]) as trap:
            tasks = lifecycle.submit_many("saw", [{"length": 2}] * 3)
            trap.wait()
        wait_until(all_succeeded, "all done", 10)
        probe = lifecycle.submit("saw", {"length": 2})
        wait_until(lambda: world.stored(probe.id).status == "succeeded", "one more", 10)
        cluster.terminate()
        assert cluster.wait() == 0
    assert outcomes() == {("succeeded", True): 4}
    assert [[kind for kind, *_ in world.events(task.id)] for task in tasks] == [
        ["submitted", "claimed", "succeeded"]
    ] * 3
    assert not WorkerProcess.objects.exclude(late_saves_refused=0).exists()


def test_a_save_that_was_never_confirmed_is_not_done_twice(wire: Wire, provider: ScriptedProvider) -> None:
    with QCluster(wire.url, **SETTINGS) as cluster:
        cluster.wait_ready()
        with wire.cut(*SAVE) as trap:
            tasks = lifecycle.submit_many("ticket.triage", [{"text": "x"}] * 3)
            trap.wait()
        wait_until(all_succeeded, "all done", 10)
        probe = lifecycle.submit("ticket.triage", {"text": "and on it goes"})
        wait_until(lambda: world.stored(probe.id).status == "succeeded", "one more", 10)
        cluster.terminate()
        assert cluster.wait() == 0
    assert outcomes() == {("succeeded", True): 4}
    assert len(provider.requests) == 4
    steps = ["submitted", "claimed", "succeeded"]
    assert [[kind for kind, *_ in world.events(task.id)] for task in tasks] == [steps] * 3
    assert not WorkerProcess.objects.exclude(late_saves_refused=0).exists()


@pytest.mark.parametrize("how", ["held", "cut"])
def test_what_a_claim_took_while_the_stop_came_is_handed_back_unstarted(
    wire: Wire, provider: ScriptedProvider, tmp_path: Path, how: str
) -> None:
    """The answer comes after the signal, or never."""
    Kind.objects.create(name="saw", handler="workshop.saw", safe_to_rerun=False)
    said = tmp_path / "said"
    with QCluster(wire.url, log=said, **SETTINGS) as cluster:
        cluster.wait_ready()
        with (wire.held if how == "held" else wire.cut)(*CLAIM) as trap:
            with transaction.atomic():
                tasks = [lifecycle.submit("ticket.triage", {"text": "x"}), lifecycle.submit("saw", {"length": 2})]
            trap.wait()
            cluster.terminate(group=True)
            wait_until(lambda: "Stopping" in said.read_text(), "the stop under way")
        assert cluster.wait() == 0
    assert outcomes() == {("interrupted", False): 2}
    assert {world.stored(task.id).status for task in tasks} == {"ready"}
    assert provider.requests == []


def test_what_a_claim_took_for_a_lost_identity_is_run_by_the_next(
    wire: Wire, provider: ScriptedProvider, second_connection: psycopg.Connection
) -> None:
    """The worker is declared lost while the answer to its claim is on the way: what it took, others may run by now."""
    with QCluster(wire.url, **{**SETTINGS, "REDRIVE_LEASE_SECONDS": 4}) as cluster:
        cluster.wait_ready()
        with wire.held(*CLAIM) as trap:
            tasks = lifecycle.submit_many("ticket.triage", [{"text": "x"}] * 3)
            trap.wait()
            second_connection.execute("UPDATE tasks_workerprocess SET lost_at = now() WHERE role = 'worker'")
            wait_until(lambda: WorkerProcess.objects.filter(role="worker", lost_at=None).exists(), "a new identity", 10)
            assert provider.requests == []
        wait_until(all_succeeded, "all done by the new one", 10)
    old, new = WorkerProcess.objects.filter(role="worker").order_by("id")
    assert outcomes() == {("lost", False): 3, ("succeeded", True): 3}
    assert set(Attempt.objects.filter(outcome="lost").values_list("worker", flat=True)) == {old.id}
    assert set(Attempt.objects.filter(outcome="succeeded").values_list("worker", flat=True)) == {new.id}
    assert len(provider.requests) == len(tasks)
