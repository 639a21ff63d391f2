"""SIGTERM to the real thing, to main and to the whole group, idle and busy, three clusters each.

Gone within the drain time and 5 s, nothing running, no budget used, nobody left.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from tasks import lifecycle
from tasks.models import Attempt, Kind, Provider, Task, WorkerProcess
from tests.chat import chat, chunk, stream
from tests.cluster import BUSY_MACHINE, QCluster, wait_until
from tests.provider import ScriptedProvider
from tests.tasks.engine.wire import Wire
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)

TIMES = 3
SLOTS = 2
DRAIN = 1.0


@contextmanager
def clusters(url: str, **settings: object) -> Iterator[list[QCluster]]:
    """Several at once, each a process group of its own with one worker."""
    settings = {"REDRIVE_WORKERS": 1, "REDRIVE_SLOTS": SLOTS, "REDRIVE_DRAIN_SECONDS": DRAIN, **settings}
    with ExitStack() as stack:
        started = [stack.enter_context(QCluster(url, **settings)) for _ in range(TIMES)]
        for cluster in started:
            cluster.wait_ready()
        yield started


def stop(started: list[QCluster], *, group: bool) -> list[float]:
    """SIGTERM to each; seconds until main was gone. Nobody is left of any."""
    at = time.monotonic()
    for cluster in started:
        cluster.terminate(group=group)
    took = []
    for cluster in started:
        assert cluster.wait(DRAIN + 5 + BUSY_MACHINE) == 0
        took.append(time.monotonic() - at)
    assert [cluster.survivors() for cluster in started] == [[]] * TIMES
    return took


def nobody_holds_anything() -> None:
    assert not Task.objects.filter(status="running").exists()
    assert not Attempt.objects.filter(outcome="running").exists()
    left = WorkerProcess.objects.filter(stopped_at=None, lost_at=None)
    assert not left.exists(), "each said that it stopped, or another said it of one that had no time to"


@pytest.mark.parametrize("group", [False, True], ids=["main", "group"])
def test_idle_clusters_are_gone_at_once(test_database_url: str, group: bool) -> None:
    with clusters(test_database_url, REDRIVE_DRAIN_SECONDS=60) as started:
        assert max(stop(started, group=group)) < 60
    nobody_holds_anything()


@pytest.mark.parametrize("group", [False, True], ids=["main", "group"])
def test_busy_clusters_hand_back_what_does_not_end_in_time(test_database_url: str, group: bool) -> None:
    with ScriptedProvider() as provider, clusters(test_database_url) as started:
        endless = stream([chunk("a word")], done=False, end="hang")
        provider.script(lambda request, n: endless)
        world.prompt_kind(provider=Provider.objects.create(name="p", base_url=provider.base_url))
        tasks = lifecycle.submit_many("ticket.triage", [{"text": f"{n}"} for n in range(TIMES * SLOTS + 2)])
        calls = provider.wait_for(TIMES * SLOTS)
        took = stop(started, group=group)
        assert max(took) < DRAIN + 5 + BUSY_MACHINE
        assert min(took) >= DRAIN, "they were given the time to end"
        closed = [call.wait_closed(1) for call in calls]
        assert len(provider.requests) == TIMES * SLOTS, "nothing was claimed after the signal"
        assert all(moment <= time.monotonic() for moment in closed)
    nobody_holds_anything()
    assert Counter(Task.objects.values_list("status", "failures", "snoozes")) == {("ready", 0, 0): len(tasks)}
    assert Counter(Attempt.objects.values_list("outcome", "counted")) == {("interrupted", False): TIMES * SLOTS}


def test_what_ends_within_the_drain_is_kept_and_what_cannot_be_stopped_is_cut_off(
    test_database_url: str, tmp_path: Path
) -> None:
    """A call that ends in time, a handler that does not hear, a thread that nobody can stop; each safe to rerun or not.

    The process does not wait for what it has handed back, and need not be killed by its sentinel.
    """
    log, said = tmp_path / "work", tmp_path / "said"
    settings = {"REDRIVE_WORKERS": 1, "REDRIVE_SLOTS": 9, "REDRIVE_DRAIN_SECONDS": 3}
    for name, safe in (("deaf", True), ("stubborn", True), ("unsafe", False)):
        handler = "workshop.deaf" if name == "deaf" else "workshop.stubborn"
        Kind.objects.create(name=name, handler=handler, safe_to_rerun=safe)
    with (
        ScriptedProvider() as provider,
        QCluster(test_database_url, log=said, REDRIVE_APPS="tests.tasks.engine.workshop", **settings) as cluster,
    ):
        cluster.wait_ready()
        provider.script(lambda request, n: chat(request, "in time", delay=1.0))
        world.prompt_kind(provider=Provider.objects.create(name="p", base_url=provider.base_url))
        tasks = {name: lifecycle.submit(name, {"log": str(log)}) for name in ("deaf", "stubborn", "unsafe")}
        wait_until(lambda: log.exists() and log.read_text().count("stubborn") == 2, "two threads at work")
        in_time = lifecycle.submit("ticket.triage", {"text": "quick"})
        provider.wait_for(1)
        at = time.monotonic()
        cluster.terminate()
        assert cluster.wait(3 + 5 + BUSY_MACHINE) == 0
        assert time.monotonic() - at < 3 + 5 + BUSY_MACHINE
        written = log.read_text()
        assert cluster.survivors() == []
    assert log.read_text() == written
    assert world.stored(in_time.id).result == "in time"
    assert "did not stop in time" not in said.read_text()
    assert said.read_text().count("does not stop; it is cut off") == 3
    lifecycle.settle_unknown()  # where the caretaker stopped before it came to that
    ends = {name: (world.stored(task.id).status, world.stored(task.id).reason) for name, task in tasks.items()}
    assert ends == {"deaf": ("ready", ""), "stubborn": ("ready", ""), "unsafe": ("dead", "outcome_unknown")}
    assert not Attempt.objects.filter(counted=True).exclude(task=in_time).exists()
    nobody_holds_anything()


WORKSHOP = {"REDRIVE_APPS": "tests.tasks.engine.workshop", "REDRIVE_DRAIN_SECONDS": DRAIN}


def all_at_work(log: Path, **counts: int) -> list[str]:
    """Submit so many tasks of each workshop handler, which note that they began; wait until all have."""
    for name, count in counts.items():
        Kind.objects.create(name=name, handler=f"workshop.{name}", safe_to_rerun=True, timeout_seconds=3600)
        lifecycle.submit_many(name, [{"log": str(log)}] * count)
    expected = sorted(name for name, count in counts.items() for _ in range(count))
    return wait_until(lambda: log.exists() and sorted(log.read_text().split()) == expected and expected, "all at work")


def stops_in_time(cluster: QCluster) -> None:
    at = time.monotonic()
    cluster.terminate()
    assert cluster.wait() == 0
    assert time.monotonic() - at < DRAIN + 5 + BUSY_MACHINE
    assert cluster.survivors() == []


@pytest.mark.parametrize("bulky", [0, 10, 60])
def test_nothing_is_left_running_by_those_who_do_not_hear(test_database_url: str, tmp_path: Path, bulky: int) -> None:
    """Also where results of 1 MiB are being saved, more of them than can be saved in time."""
    log = tmp_path / "work"
    with QCluster(test_database_url, log=tmp_path / "said", REDRIVE_SLOTS=50, **WORKSHOP) as cluster:
        cluster.wait_ready()
        all_at_work(log, deaf=1, asleep=1, bulky=bulky)
        stops_in_time(cluster)
    nobody_holds_anything()
    assert dict(Task.objects.exclude(kind="bulky").values_list("kind", "status")) == {
        "deaf": "ready",
        "asleep": "ready",
    }
    assert set(Task.objects.filter(kind="bulky").values_list("status", flat=True)) <= {"succeeded", "ready"}
    assert not Attempt.objects.filter(counted=True).exclude(outcome="succeeded").exists()
    assert set(Task.objects.values_list("failures", "rescues")) == {(0, 0)}


SLOW_TO_NOTE_A_DEATH = """
CREATE FUNCTION note_slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NEW; END $$;
CREATE TRIGGER note_slowly BEFORE UPDATE OF exit_code ON tasks_workerprocess
FOR EACH ROW EXECUTE FUNCTION note_slowly();
"""


@pytest.fixture
def slow_to_note_a_death(second_connection: psycopg.Connection) -> Iterator[None]:
    second_connection.execute(SLOW_TO_NOTE_A_DEATH)
    yield
    second_connection.execute("DROP FUNCTION note_slowly CASCADE")


@pytest.mark.usefixtures("slow_to_note_a_death")
def test_a_worker_killed_while_it_drains_leaves_nothing_running(test_database_url: str, tmp_path: Path) -> None:
    """The caretaker stays until it was told of the death, however slow the database is to note it."""
    log = tmp_path / "work"
    settings = WORKSHOP | {"REDRIVE_DRAIN_SECONDS": 10, "REDRIVE_WORKERS": 1}
    with QCluster(test_database_url, log=tmp_path / "said", **settings) as cluster:
        cluster.wait_ready()
        all_at_work(log, deaf=1, asleep=1)
        (worker,) = cluster.worker_pids()
        cluster.terminate()
        wait_until(lambda: "Draining 2 attempts" in (tmp_path / "said").read_text(), "the drain")
        os.kill(worker, signal.SIGKILL)
        assert cluster.wait() == 0
    assert set(Task.objects.values_list("status", flat=True)) == {"ready"}
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"lost"}


def test_a_database_that_says_nothing_does_not_keep_it(test_database_url: str, tmp_path: Path) -> None:
    log = tmp_path / "work"
    with (
        Wire(test_database_url) as wire,
        QCluster(wire.url, log=tmp_path / "said", REDRIVE_SLOTS=50, **WORKSHOP) as cluster,
    ):
        cluster.wait_ready()
        all_at_work(log, deaf=1, asleep=1, bulky=5)
        with wire.silent():
            stops_in_time(cluster)


def test_a_worker_that_is_asked_alone_drains_and_is_replaced(test_database_url: str) -> None:
    """As when it is recycled: its tasks go on in the others, or in the next one."""
    with ScriptedProvider() as provider, QCluster(test_database_url, REDRIVE_DRAIN_SECONDS=0) as cluster:
        cluster.wait_ready()
        provider.script(lambda request, n: chat(request, "done", delay=60 if n <= 2 else 0))
        world.prompt_kind(provider=Provider.objects.create(name="p", base_url=provider.base_url))
        tasks = lifecycle.submit_many("ticket.triage", [{"text": "1"}, {"text": "2"}])
        provider.wait_for(2)
        busy = WorkerProcess.objects.filter(pk__in=Task.objects.values("worker")).values_list("pid", flat=True)
        for process in cluster.processes():
            if process.pid in set(busy):
                process.send_signal(signal.SIGTERM)
        wait_until(lambda: not Task.objects.exclude(status="succeeded").exists(), "both tasks done elsewhere")
        outcomes = Counter(Attempt.objects.values_list("outcome", flat=True))
        assert outcomes == {"interrupted": 2, "succeeded": 2}
        wait_until(cluster.is_ready, "the worker's place filled again")
    assert all(world.stored(task.id).failures == 0 for task in tasks)
