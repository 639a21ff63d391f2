"""Work cut off by SIGKILL or a drain, and its handler asked what became of it, by real worker processes."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.lifecycle.suspects import DEATHS_IN_UNREST
from tasks.lifecycle.unknown import MAX_ASKS
from tasks.models import Attempt, Kind, Task, TaskEvent, WorkerProcess
from tests.cluster import QCluster, wait_until
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)

WORKSHOP = {"REDRIVE_APPS": "tests.tasks.engine.workshop"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What the outside world saw."""
    return tmp_path / "log"


@pytest.fixture
def kind() -> Kind:
    """A kind with an effect, whose handler can be asked about it."""
    return Kind.objects.create(name="glue", handler="workshop.glue")


def glue(log: Path, *truths: str) -> list[Task]:
    """Tasks whose handler will tell these truths, all of them under way, and none to end before the file is there."""
    payloads = [{"log": str(log), "until": str(log.with_name("until")), "truth": truth} for truth in truths]
    tasks = lifecycle.submit_many("glue", payloads)
    wait_until(lambda: len(seen(log, "glued")) == len(tasks), "the gluing begun")
    return tasks


def seen(log: Path, what: str) -> list[list[str]]:
    """The words of each line that begins so."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.split() for line in lines if line.startswith(what)]


def kill_busy() -> None:
    """SIGKILL to every worker that runs something."""
    pids = set(Attempt.objects.filter(outcome="running").values_list("worker__pid", flat=True))
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def wait_for(task: Task, status: str) -> Task:
    wait_until(lambda: world.stored(task.id).status == status, f"the task {status}")
    return world.stored(task.id)


def events(task: Task, type: str) -> list[dict[str, Any]]:
    return [event.data for event in TaskEvent.objects.filter(task=task, type=type).order_by("seq")]


def test_a_killed_workers_handlers_are_asked_what_happened(test_database_url: str, kind: Kind, log: Path) -> None:
    with QCluster(test_database_url, REDRIVE_WORKERS=1, **WORKSHOP) as cluster:
        cluster.wait_ready()
        glued, free, locked = glue(log, "done", "not_done", "broken")
        first = Attempt.objects.get(task=glued)
        kill_busy()
        assert wait_for(glued, "succeeded").result == {"glued": first.pk, "ended": True}
        wait_until(lambda: world.stored(free.id).attempts.count() == 2, "the one that was not done running again")
        wait_until(lambda: events(locked, "asked"), "the one that cannot tell asked about")
        assert world.stored(locked.id).status == "unknown"
        assert lifecycle.cancel([locked.id], actor="ana") == {locked.id}
        log.with_name("until").touch()
        assert wait_for(free, "succeeded").result == "dry"
    assert world.stored(locked.id).status == "cancelled"
    assert [kind for kind, *_ in world.events(glued.id)] == ["submitted", "claimed", "rescued", "reconciled"]
    assert [kind for kind, *_ in world.events(free.id)] == [
        "submitted", "claimed", "rescued", "not_done", "claimed", "succeeded",
    ]  # fmt: skip
    (told, *_) = events(locked, "asked")
    assert "ShopClosed: the glue is locked away, password=[masked]" in told["error"]
    assert not DeadLetter.objects.exists()
    assert WorkerProcess.objects.filter(role="worker").first().reconcilers == ["workshop.glue"]
    assert len([words for words in seen(log, "glued") if words[1] == str(glued.id)]) == 1


def test_many_are_each_asked_about_once_by_two_workers(test_database_url: str, kind: Kind, log: Path) -> None:
    with QCluster(test_database_url, REDRIVE_WORKERS=2, REDRIVE_SLOTS=20, **WORKSHOP) as cluster:
        cluster.wait_ready()
        tasks = glue(log, *["done"] * 30)
        kill_busy()
        for task in tasks:
            wait_for(task, "succeeded")
    asked = Counter(words[3] for words in seen(log, "asked"))
    assert asked == {str(task.id): 1 for task in tasks}
    assert len(seen(log, "glued")) == 30


def test_one_killed_while_it_asks_is_asked_again(test_database_url: str, kind: Kind, log: Path) -> None:
    with QCluster(test_database_url, REDRIVE_WORKERS=1, **WORKSHOP) as cluster:
        cluster.wait_ready()
        (task,) = glue(log, "slow")
        kill_busy()
        ((_, asks, pid, _),) = wait_until(lambda: seen(log, "asked"), "the first question")
        assert asks == "1"
        assert world.stored(task.id).status == "unknown"
        os.kill(int(pid), signal.SIGKILL)
        stored = wait_for(task, "succeeded")
    assert stored.result == {"glued": Attempt.objects.get().pk, "ended": True}
    assert [words[1] for words in seen(log, "asked")] == ["1", "2"]
    assert events(task, "reconciled")[0]["asks"] == 2


@pytest.mark.parametrize(
    ("truth", "ends"),
    [("done", ("succeeded", "")), ("not_done", ("dead", "lease_expired")), ("kills", ("dead", "lease_expired"))],
)
def test_one_that_is_taken_for_a_killer_is_asked_about_once_and_runs_no_more(
    test_database_url: str, kind: Kind, log: Path, truth: str, ends: tuple[str, str]
) -> None:
    """So many processes have died under it that the next is the last, whatever else dies."""
    with QCluster(test_database_url, REDRIVE_WORKERS=1, **WORKSHOP) as cluster:
        cluster.wait_ready()
        (task,) = glue(log, truth)
        Task.objects.update(rescues=DEATHS_IN_UNREST - 1)
        kill_busy()
        stored = wait_for(task, ends[0])
    assert stored.reason == ends[1]
    assert [words[1] for words in seen(log, "asked")] == ["1"]
    assert len(seen(log, "glued")) == 1
    killed = WorkerProcess.objects.filter(role="worker", exit_code=-signal.SIGKILL)
    assert killed.count() == (2 if truth == "kills" else 1)


def test_one_that_kills_while_it_is_asked_about_takes_no_other_with_it(
    test_database_url: str, kind: Kind, log: Path
) -> None:
    """Both are taken for killers, and the innocent one has an answer."""
    with QCluster(test_database_url, REDRIVE_WORKERS=1, **WORKSHOP) as cluster:
        cluster.wait_ready()
        killer, innocent = glue(log, "kills", "done")
        Task.objects.update(rescues=DEATHS_IN_UNREST - 1)
        kill_busy()
        assert wait_for(killer, "dead").reason == "lease_expired"
        wait_for(innocent, "succeeded")
    assert Counter(words[3] for words in seen(log, "asked")) == {str(killer.id): 1, str(innocent.id): 1}


def test_one_that_stays_unknown_becomes_a_letter(test_database_url: str, kind: Kind, log: Path) -> None:
    """Its waits are passed by, as each question has been answered."""
    with QCluster(test_database_url, REDRIVE_WORKERS=1, **WORKSHOP) as cluster:
        cluster.wait_ready()
        (task,) = glue(log, "still_unknown")
        kill_busy()

        def hurried_to_its_end() -> bool:
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE tasks_task t SET ask_after = now() WHERE status = 'unknown' AND asks = "
                    "(SELECT count(*) FROM tasks_taskevent e WHERE e.task_id = t.id AND e.type = 'asked')"
                )
            return world.stored(task.id).status == "dead"

        wait_until(hurried_to_its_end, "the last question", 60)
    assert [words[1] for words in seen(log, "asked")] == [str(n + 1) for n in range(MAX_ASKS)]
    letter = DeadLetter.objects.get()
    assert (letter.reason, letter.error_code) == ("outcome_unknown", "AI_WORKER_LOST")


def test_one_cut_off_at_a_drain_is_asked_about_by_the_next_cluster(
    test_database_url: str, kind: Kind, log: Path
) -> None:
    with QCluster(test_database_url, REDRIVE_WORKERS=1, REDRIVE_DRAIN_SECONDS=1, **WORKSHOP) as cluster:
        cluster.wait_ready()
        (task,) = glue(log, "done")
        cluster.terminate()
        assert cluster.wait() == 0
    assert world.stored(task.id).status == "unknown"
    assert [kind for kind, *_ in world.events(task.id)] == ["submitted", "claimed", "interrupted"]
    with QCluster(test_database_url, REDRIVE_WORKERS=1, **WORKSHOP):
        wait_for(task, "succeeded")
    assert events(task, "reconciled") != []
