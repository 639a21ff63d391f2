"""django-q2's schedules: each fires by itself, and what cannot be fired becomes a dead letter."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import Schedule
from django_q.scheduler import scheduler
from django_q.signing import SignedPackage
from django_q.tasks import schedule

from tasks.engine.broker import TaskBroker
from tasks.engine.schedules import fire_due
from tasks.models import Kind, Task
from tests.cluster import ROOT
from tests.drills import clock

pytestmark = pytest.mark.django_db(transaction=True)


def past(**ago: float) -> datetime:
    """A time that lies back."""
    return timezone.now() - timedelta(**(ago or {"hours": 2}))


def make(func: str = "math.sqrt", **fields: Any) -> Any:
    """A schedule as it may stand in the table, unchecked."""
    fields = {"schedule_type": Schedule.HOURLY, "next_run": past(), **fields}
    made = Schedule(func=func, **fields)
    Schedule.objects.bulk_create([made])
    return Schedule.objects.get(func=func, name=fields.get("name"))


def package(task: Task) -> dict[str, Any]:
    """django-q2's call in a task."""
    call: dict[str, Any] = SignedPackage.loads(task.payload["package"])
    return call


def test_a_schedule_fires_once_and_moves_on_in_the_same_transaction() -> None:
    """A broker that closes the connection inside the scheduler's transaction makes it fire every 30 s for ever."""
    schedule("math.sqrt", 4, name="roots", schedule_type=Schedule.HOURLY, next_run=past())
    assert [fire_due() for _ in range(3)] == [1, 0, 0]
    task = Task.objects.get()
    assert (task.payload["func"], task.payload["group"]) == ("math.sqrt", "roots")
    stored = Schedule.objects.get()
    assert stored.next_run > timezone.now()
    assert stored.task == task.trace_id


FIRE = "import django; django.setup(); from tasks.engine.schedules import fire_due; print(fire_due())"


@pytest.mark.parametrize("shift", [600, -600])
def test_a_wrong_clock_of_this_machine_moves_no_schedule(test_database_url: str, shift: int) -> None:
    """The next time is the first after now, and what is now the database says."""
    make(schedule_type=Schedule.MINUTES, minutes=1, next_run=past(seconds=90))
    environment = {
        **os.environ,
        "DATABASE_URL": test_database_url,
        "LD_PRELOAD": clock.library() or "",
        "FAKETIME": f"{shift:+d}",
    }
    fired = subprocess.run([sys.executable, "-c", FIRE], env=environment, cwd=ROOT, capture_output=True, check=True)
    assert fired.stdout.split() == [b"1"]
    task, stored = Task.objects.get(), Schedule.objects.get()
    assert abs((package(task)["started"] - timezone.now()).total_seconds() - shift) < 300, "its clock is wrong"
    assert timedelta() < stored.next_run - task.created_at <= timedelta(minutes=1)


def test_everything_arrives() -> None:
    due = past(minutes=1)
    schedule(
        *("math.hypot", 3, "four", [5]),
        name="all",
        hook="builtins.print",
        cluster="slow",
        intended_date_kwarg="when",
        next_run=due,
        schedule_type=Schedule.MINUTES,
        minutes=5,
        x=1,
        label="it's",
    )
    assert fire_due() == 1, "whatever its cluster"
    call = package(Task.objects.get())
    assert (call["args"], call["kwargs"]) == (
        (3, "four", [5]),
        {"x": 1, "label": "it's", "when": due.isoformat()},
    )
    assert (call["hook"], call["group"], call["cluster"]) == ("builtins.print", "all", "slow")
    assert timezone.now() < Schedule.objects.get().next_run <= timezone.now() + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("kwargs", "expected"), [("x=1, y='two'", {"x": 1, "y": "two"}), ("{'x': 1}", {"x": 1}), ("", {}), (None, {})]
)
def test_keyword_arguments_in_both_ways_of_writing(kwargs: str | None, expected: dict[str, Any]) -> None:
    make(kwargs=kwargs)
    fire_due()
    assert package(Task.objects.get())["kwargs"] == expected


def test_our_scheduler_sends_what_djangoq2s_own_does() -> None:
    """Both are there: programs may call the other."""
    fields = {"args": "1, [2]", "kwargs": "x=1, q_options={'task_name': 'n'}", "hook": "builtins.print"}
    for name in ("ours", "theirs"):
        make(name=name, **fields, func=f"shop.{name}")
    Schedule.objects.filter(name="theirs").update(next_run=timezone.now() + timedelta(hours=1))
    fire_due()
    Schedule.objects.filter(name="theirs").update(next_run=past())
    scheduler(broker=TaskBroker())
    ours, theirs = (package(task) for task in Task.objects.order_by("id"))
    for call in (ours, theirs):
        for name in ("id", "started", "func", "group"):
            call.pop(name)
    assert ours == theirs
    first, second = Schedule.objects.order_by("name")
    assert abs(first.next_run - second.next_run) < timedelta(minutes=1)
    assert (first.repeats, first.schedule_type) == (second.repeats, second.schedule_type)


def test_once_is_once() -> None:
    make(schedule_type=Schedule.ONCE, name="gone")
    make(schedule_type=Schedule.ONCE, name="kept", repeats=3)
    assert [fire_due(), fire_due()] == [2, 0]
    kept = Schedule.objects.get()
    assert (kept.name, kept.repeats) == ("kept", 0)


def test_repeats_run_out() -> None:
    made = make(repeats=2)
    for _ in range(4):
        fire_due()
        Schedule.objects.filter(pk=made.pk).update(next_run=past())
    assert Task.objects.count() == 2


def test_cron() -> None:
    made = schedule("math.sqrt", 4, schedule_type=Schedule.CRON, cron="30 4 * * 1")
    assert (made.next_run.hour, made.next_run.minute, made.next_run.weekday()) == (4, 30, 0)
    Schedule.objects.update(next_run=past())
    assert fire_due() == 1
    after = Schedule.objects.get().next_run
    assert after > timezone.now()
    assert (after.hour, after.minute, after.weekday()) == (4, 30, 0)


def test_years_of_missed_minutes_are_one_call() -> None:
    make(schedule_type=Schedule.MINUTES, minutes=1, next_run=datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC))
    assert fire_due() == 1
    after = Schedule.objects.get().next_run
    assert after > timezone.now()
    assert after.second == 30


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"args": "1, two"}, "Its arguments cannot be read: '1, two'"),
        ({"args": "datetime.now()"}, "Its arguments cannot be read"),
        ({"args": "(" * 5_000}, "Its arguments cannot be read"),
        ({"kwargs": "x=1, y"}, "Its keyword arguments cannot be read: 'x=1, y'"),
        ({"kwargs": "[1, 2]"}, "Its keyword arguments cannot be read"),
        ({"kwargs": "{1: 2}"}, "Its keyword arguments cannot be read"),
        ({"kwargs": "{'when': datetime.datetime(2026, 1, 1)}"}, "Its keyword arguments cannot be read"),
        ({"kwargs": "q_options=[1]"}, "q_options is no dictionary"),
        ({"args": repr("x" * 2_000_000)}, "bytes"),
    ],
    ids=["name", "call", "deep", "positional", "list", "number", "date", "options", "large"],
)
def test_what_cannot_be_fired_becomes_a_task_that_says_why(fields: dict[str, Any], reason: str) -> None:
    """And it keeps no other back; nor is it tried again each half minute, but at its next time."""
    make(name="broken", **fields)
    make("math.floor", name="good", next_run=past(hours=1))
    assert fire_due() == 2
    broken, good = Task.objects.order_by("id")
    assert reason in broken.payload["problem"]
    assert "The schedule “broken” cannot be fired." in broken.payload["problem"]
    assert broken.payload["problem"].endswith("mend the schedule, or make it anew, and discard this letter.")
    assert (broken.subject, broken.tags) == ("math.sqrt", ["broken"])
    assert package(good)["func"] == "math.floor"
    assert all(one.next_run > timezone.now() for one in Schedule.objects.all())
    assert Schedule.objects.get(name="broken").task == broken.trace_id


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "often", None], ids=["no-day", "no-cron", "none"])
def test_a_schedule_without_a_next_time_stops(cron: str | None) -> None:
    made = make(schedule_type=Schedule.CRON, cron=cron)
    assert [fire_due(), fire_due()] == [1, 0]
    assert "The schedule is stopped: give it a next run" in Task.objects.get().payload["problem"]
    made.refresh_from_db()
    assert made.next_run is None


@pytest.fixture
def refused() -> Any:
    """A schedule whose row the database refuses to change, in a way that says nothing."""
    made = make(name="stuck")
    with connection.cursor() as cursor:
        cursor.execute(
            f"""CREATE FUNCTION refuse_schedule() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                RAISE EXCEPTION 'refused by the test' USING ERRCODE = 'XX000'; END $$;
            CREATE TRIGGER refuse_schedule BEFORE UPDATE ON django_q_schedule FOR EACH ROW
                WHEN (OLD.id = {made.pk}) EXECUTE FUNCTION refuse_schedule()"""
        )
    yield made
    drop_trigger()


def drop_trigger() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION IF EXISTS refuse_schedule CASCADE")


def test_one_that_fails_for_no_known_reason_is_told_to_people_once(refused: Any) -> None:
    """Not at each try; it is due still, and fires once it can."""
    make("math.floor", name="good", next_run=past(hours=1))
    assert [fire_due() for _ in range(3)] == [1, 0, 0]
    told = Task.objects.get(payload__name="stuck")
    problem = told.payload["problem"]
    assert problem.startswith("The schedule “stuck” cannot be fired. It is tried again until it can be. InternalError:")
    assert "refused by the test" in problem
    assert Schedule.objects.get(name="stuck").next_run == refused.next_run
    drop_trigger()
    assert fire_due() == 1
    assert Schedule.objects.get(name="stuck").next_run > timezone.now()


def test_one_that_breaks_again_is_told_again(refused: Any) -> None:
    fire_due()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_q_schedule DISABLE TRIGGER refuse_schedule")
        Schedule.objects.update(next_run=past(hours=1))
        cursor.execute("ALTER TABLE django_q_schedule ENABLE TRIGGER refuse_schedule")
    assert [fire_due(), fire_due()] == [0, 0]
    assert Task.objects.count() == 2


def test_what_will_pass_is_no_letter(second_connection: psycopg.Connection[Any]) -> None:
    """A lock on the table of schedules: read they can be, and not changed."""
    make()
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
    try:
        with second_connection.transaction():
            second_connection.execute("LOCK TABLE django_q_schedule IN SHARE ROW EXCLUSIVE MODE")
            assert fire_due() == 0
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
    assert not Task.objects.exists()
    assert fire_due() == 1


def test_sync_has_no_meaning_in_a_schedule() -> None:
    """It would run the function in the scheduler."""
    make(kwargs="sync=True", args="16")
    make("math.floor", kwargs="q_options={'sync': True}", args="16")
    fire_due()
    assert set(Task.objects.values_list("status", flat=True)) == {"ready"}


def test_two_schedulers_fire_a_schedule_once(second_connection: psycopg.Connection[Any]) -> None:
    make()
    with second_connection.transaction():
        second_connection.execute("SELECT 1 FROM django_q_schedule FOR UPDATE")
        assert fire_due() == 0, "the other has it"
    assert fire_due() == 1


def test_a_database_that_fails_leaves_it_due(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is raised, nothing is lost."""
    caplog.set_level(logging.ERROR)
    made = make()
    Kind.objects.get_or_create(name="django_q.call", defaults={"handler": "django_q.call"})
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tasks_taskevent RENAME TO tasks_taskevent_away")
    try:
        assert fire_due() == 0
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE tasks_taskevent_away RENAME TO tasks_taskevent")
    assert "it is due still" in caplog.text
    assert Schedule.objects.get().next_run == made.next_run
    assert fire_due() == 1
