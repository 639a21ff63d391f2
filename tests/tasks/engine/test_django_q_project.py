"""A project written for django-q2 runs unchanged: its tasks file, its schedules, its calls from another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from django.contrib.auth.models import Group, User
from django.core.signing import Signer
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from django_q.models import Task as DjangoQTask

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.models import Attempt, Task, TaskEvent
from tests.cluster import ROOT, QCluster, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

#: As its authors wrote it, for django-q2 and nothing else.
TASKS = """
import datetime
import time
from pathlib import Path

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone
from django_q.tasks import async_task


class PaymentRefused(Exception):
    pass


def add(a, b):
    return a + b


def greet(name, greeting="Hello", *, mark="."):
    return f"{greeting}, {name}{mark}"


def promote(user, group_name):
    group, _ = Group.objects.get_or_create(name=group_name)
    user.groups.add(group)
    return user


def remind(when, minutes=5):
    return when + datetime.timedelta(minutes=minutes)


def charge(order):
    raise PaymentRefused(f"order {order}: the card is refused")


def fetch_feed(marker):
    marker = Path(marker)
    if not marker.exists():
        marker.touch()
        raise ConnectionError("connection reset by peer")
    return "fetched"


def write_line(name):
    with transaction.atomic():
        Group.objects.create(name=name)
    return name


def write_when_allowed(name, allowed):
    if not Path(allowed).exists():
        raise ValueError("not allowed yet")
    return write_line(name)


def fan_out(count):
    for n in range(count):
        async_task("shop.tasks.write_line", f"fanned {n}", group="fan")
    return count


def nightly(label="none"):
    Group.objects.create(name=f"nightly {label}")


def remember(task):
    said = str(task.result).partition(" : ")[0]
    Group.objects.get_or_create(name=f"{task.name}: {task.success} {said}")


def remember_group(task):
    Group.objects.create(name=f"group {task.group}")


def stumble(task):
    raise RuntimeError("the hook stumbled")


class Basket(Exception):
    def __init__(self, owner, size):
        super().__init__(owner)
"""
BROKEN = """
raise RuntimeError("the licence ran out")
"""
#: What the project's web process does. Prints the ids that django-q2 gave it.
CALLS = """
import datetime, json, sys
import django
django.setup()
from django.contrib.auth.models import User
from django.db import transaction
from django_q.models import Schedule
from django_q.tasks import Iter, async_chain, async_task, schedule
from shop import tasks

folder = sys.argv[1]
ann = User.objects.create_user("ann")
when = datetime.datetime(2026, 3, 29, 1, 30, tzinfo=datetime.timezone.utc)
ids = {
    "args": async_task("shop.tasks.add", 2, 3),
    "kwargs": async_task(tasks.greet, "Ann", greeting="Bye", mark="!", group="greetings", task_name="bye"),
    "hooked": async_task("shop.tasks.add", 1, 1, hook="shop.tasks.remember", task_name="hooked"),
    "hooked by function": async_task(tasks.add, 2, 2, hook=tasks.remember, task_name="by function"),
    "model": async_task(tasks.promote, ann, "staff"),
    "date": async_task("shop.tasks.remind", when, minutes=30),
    "options": async_task("shop.tasks.add", 5, 5, q_options={"group": "sums", "timeout": 1, "save": False}),
    "retried": async_task("shop.tasks.fetch_feed", f"{folder}/feed", hook=tasks.remember, task_name="feed"),
    "fanned": async_task("shop.tasks.fan_out", 3),
    "bad hook": async_task("shop.tasks.add", 3, 3, hook="shop.tasks.stumble"),
    "raising": async_task("shop.tasks.charge", 17, hook=tasks.remember, task_name="charge"),
    "arguments": async_task("shop.tasks.add", 1),
    "gone": async_task("shop.tasks.gone"),
    "broken": async_task("shop.broken.work"),
    "unpackable": async_task("shop.tasks.greet", tasks.Basket("ann", 3)),
    "sync": async_task("shop.tasks.add", 20, 22, sync=True, hook=tasks.remember, task_name="sync"),
}
try:
    async_task("shop.tasks.charge", 18, sync=True)
except tasks.PaymentRefused as error:
    ids["sync error"] = str(error)
try:
    with transaction.atomic():
        async_task("shop.tasks.write_line", "never")
        raise RuntimeError
except RuntimeError:
    pass
ids["chain"] = async_chain([("shop.tasks.write_line", ("first",)), (tasks.write_when_allowed, ("second",),
    {"allowed": f"{folder}/allowed"}), ("shop.tasks.write_line", ("third",))])
ids["iter"] = Iter("shop.tasks.add", args=[(1, 2), (3, 4)]).run()
past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=7)
schedule("shop.tasks.nightly", label="minutes", name="minutes", schedule_type="I", minutes=5, next_run=past)
schedule("shop.tasks.nightly", label="once", name="once", next_run=past, hook="shop.tasks.remember_group")
schedule("shop.tasks.nightly", label="cron", name="cron", schedule_type=Schedule.CRON, cron="*/5 * * * *")
Schedule.objects.filter(name="cron").update(next_run=past)
schedule("shop.tasks.nightly", label="slow", name="slow", schedule_type="D", cluster="slow", next_run=past)
Schedule.objects.create(func="shop.tasks.add", args="1, two", name="unreadable", schedule_type="D", next_run=past)
Schedule.objects.create(func="shop.tasks.away", name="dangling", schedule_type="D", next_run=past)
print(json.dumps(ids))
"""
OURS = ("view", "operate", "configure")
#: name → (code, what the letter says)
LETTERS = {
    "raising": ("AI_UNKNOWN_ERROR", "shop.tasks.PaymentRefused: order 17: the card is refused"),
    "arguments": ("AI_CONFIG_INVALID", "'shop.tasks.add' cannot be called with these arguments: missing a required"),
    "gone": ("AI_CONFIG_INVALID", "The function 'shop.tasks.gone' does not exist"),
    "broken": ("AI_CONFIG_INVALID", "The function 'shop.broken.work' cannot be imported"),
    "unpackable": ("AI_CONFIG_INVALID", "The call cannot be unpacked: TypeError"),
}
RESULTS = {
    "args": 5,
    "kwargs": "Bye, Ann!",
    "hooked": 2,
    "hooked by function": 4,
    "model": "ann",
    "date": "2026-03-29 02:00:00+00:00",
    "options": 10,
    "retried": "fetched",
    "fanned": 3,
    "bad hook": 6,
    "sync": 42,
}
WRITTEN = {
    *("hooked: True 2", "by function: True 4", "sync: True 42", "feed: False connection reset by peer"),
    *("feed: True fetched", "charge: False order 17: the card is refused", "staff", "first"),
    *("fanned 0", "fanned 1", "fanned 2", "group once"),
    *("nightly minutes", "nightly once", "nightly cron", "nightly slow"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Its folder, with the app ``shop``."""
    (tmp_path / "shop").mkdir()
    for name, text in (("__init__", ""), ("tasks", TASKS), ("broken", BROKEN)):
        (tmp_path / "shop" / f"{name}.py").write_text(dedent(text))
    return tmp_path


def its_environment(project: Path) -> dict[str, str]:
    """What every process of the project has, beside the database and the secret key."""
    return {
        "REDRIVE_APPS": "shop",
        "PYTHONPATH": f"{project}{os.pathsep}{ROOT}",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }


def call_from_another_process(project: Path, url: str) -> dict[str, str]:
    """Run the project's calls as its web process would; django-q2's ids by name."""
    environment = {**os.environ, "DATABASE_URL": url, "SECRET_KEY": "only-for-tests", **its_environment(project)}
    command = [sys.executable, "-c", CALLS, str(project)]
    run = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    ids: dict[str, str] = json.loads(run.stdout)
    return ids


def settled() -> bool:
    """Whether nothing is under way or will be."""
    return not Task.objects.exclude(status__in=("succeeded", "dead")).exists()


def test_a_project_of_djangoq2_runs_unchanged(project: Path, test_database_url: str) -> None:
    with QCluster(test_database_url, **its_environment(project)) as cluster:
        cluster.wait_ready()
        ids = call_from_another_process(project, test_database_url)
        wait_until(lambda: Schedule.objects.filter(next_run__lt=timezone.now()).count() == 0, "the schedules", 60)
        wait_until(settled, "everything settled", 60)
        _check_results(ids)
        _check_letters(ids)
        _check_schedules()
        assert (
            set(Group.objects.exclude(name__in=("view", "operate", "configure")).values_list("name", flat=True))
            == WRITTEN
        )
        _check_the_chain_goes_on(ids["chain"], project)
        _check_another_key(ids["args"])
    assert not OrmQ.objects.exists()
    assert not DjangoQTask.objects.exists()


def _check_results(ids: dict[str, str]) -> None:
    tasks = {name: Task.objects.get(trace_id=ids[name]) for name in RESULTS}
    assert {name: (task.status, task.result) for name, task in tasks.items()} == {
        name: ("succeeded", result) for name, result in RESULTS.items()
    }
    outcomes = list(tasks["retried"].attempts.order_by("id").values_list("outcome", flat=True))
    assert outcomes == ["failed", "succeeded"]
    assert (tasks["kwargs"].tags, tasks["options"].tags) == (["greetings"], ["sums"])
    assert User.objects.get(username="ann").groups.get().name == "staff"
    (event,) = TaskEvent.objects.filter(type="hook_failed")
    assert (event.task_id, event.data["error"]) == (tasks["bad hook"].id, "RuntimeError: the hook stumbled")
    assert ids["sync error"] == "order 18: the card is refused"
    results = Task.objects.filter(tags__contains=[ids["iter"]]).values_list("result", flat=True)
    assert sorted(results) == [3, 7]


def _check_letters(ids: dict[str, str]) -> None:
    for name, (code, said) in LETTERS.items():
        letter = DeadLetter.objects.get(trace_id=ids[name])
        # What nobody knows may pass, so it is tried again; what cannot be called is not.
        why, tries = ("attempts_exhausted", 3) if code == "AI_UNKNOWN_ERROR" else ("not_retryable", 1)
        assert (letter.reason, letter.error_code, letter.attempts) == (why, code, tries), name
        assert said in letter.last_error, name
    others = DeadLetter.objects.exclude(trace_id__in=[ids[name] for name in LETTERS])
    assert sorted(letter.last_error.splitlines()[0].partition(": ")[2] for letter in others) == [
        "The function 'shop.tasks.away' does not exist for this worker.",
        "The schedule “unreadable” cannot be fired. Its arguments cannot be read: '1, two'. Write literals with"
        " commas: 1, 'two', [3]. Reprocess cannot help: mend the schedule, or make it anew, and discard this letter.",
        "not allowed yet",
        "order 18: the card is refused",
    ]


def _check_schedules() -> None:
    assert sorted(Schedule.objects.values_list("name", flat=True)) == [
        "cron",
        "dangling",
        "minutes",
        "slow",
        "unreadable",
    ]
    for schedule in Schedule.objects.all():
        assert Task.objects.filter(trace_id=schedule.task).count() == 1, schedule.name


def _check_the_chain_goes_on(group: str, project: Path) -> None:
    """It stopped at its second link; sent again, that one goes on with the third."""
    links = Task.objects.filter(tags__contains=[group]).order_by("id")
    assert list(links.values_list("status", flat=True)) == ["succeeded", "dead"]
    (project / "allowed").touch()
    assert lifecycle.reprocess([links[1].pk], actor="ana")
    wait_until(lambda: Group.objects.filter(name="third").exists(), "the third link")
    wait_until(settled, "the chain at its end")
    assert list(links.values_list("status", flat=True)) == ["succeeded"] * 3
    assert DeadLetter.objects.get(task=links[1]).state == "recovered"


def _check_another_key(call_id: str) -> None:
    """What somebody else signed is never unpacked."""
    forged = Signer(key="another key").sign(Task.objects.get(trace_id=call_id).payload["package"])
    task = lifecycle.submit("django_q.call", {"func": "shop.tasks.add", "package": forged})
    wait_until(lambda: Task.objects.get(pk=task.pk).status == "dead", "the death of the forged call")
    letter = DeadLetter.objects.get(task=task)
    assert "another SECRET_KEY" in letter.last_error
    assert Attempt.objects.filter(task=task).count() == 1
