"""Submitting: in the caller's transaction, checked, once per idempotency key."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta
from datetime import timezone as fixed_offset
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tasks import lifecycle, submit
from tasks.lifecycle import SubmitError
from tasks.lifecycle.announce import CHANNEL
from tasks.models import Task, TaskEvent
from tests.tasks.lifecycle import world

HOUR = timedelta(hours=1)
EAST, WEST = fixed_offset(timedelta(hours=14)), fixed_offset(timedelta(hours=-12))


def nested(levels: int) -> dict[str, Any]:
    """Objects in each other, the innermost empty."""
    value: dict[str, Any] = {}
    for _level in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.django_db
def test_a_task_is_ready_at_once() -> None:
    world.prompt_kind(subject="ticket.title", priority=7)
    task = submit("ticket.triage", {"ticket": {"title": "  Charged\n twice "}}, session_id="s-1", tags=["vip"])
    task.refresh_from_db()
    assert (task.status, task.cycle, task.priority, task.subject) == ("ready", 1, 7, "Charged twice")
    assert (task.session_id, task.tags, task.payload) == ("s-1", ["vip"], {"ticket": {"title": "  Charged\n twice "}})
    assert world.events(task.id) == [("submitted", "", "ready")]


@pytest.mark.django_db
def test_a_later_task_is_scheduled() -> None:
    world.prompt_kind()
    task = submit("ticket.triage", "text", run_after=timezone.now() + timedelta(hours=1))
    assert task.status == "scheduled"
    assert lifecycle.claim(world.worker(), 5, []) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    "payload", [None, True, 0, 1.5, "text", [], [1, {"a": None}], {"": ""}, "é漢字😀", nested(500)]
)
def test_any_json_value_is_a_payload(payload: Any) -> None:
    world.prompt_kind()
    assert world.stored(submit("ticket.triage", payload).id).payload == payload


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("payload", "options", "sentence"),
    [
        ("x" * (1024 * 1024), {}, "The payload has 1048578 bytes; at most 1048576 are taken."),
        ("a\x00b", {}, "NUL"),
        ({"deep": [{"k\x00": 1}]}, {}, "NUL"),
        (nested(501), {}, "nested too deeply: at most 500 levels are taken."),
        (nested(50_000), {}, "nested too deeply: at most 500 levels are taken."),
        ("\ud800", {}, "lone surrogate"),
        (float("nan"), {}, "not JSON"),
        ({1, 2}, {}, "not JSON"),
        ("x", {"priority": 101}, "from -100 to 100"),
        ("x", {"priority": True}, "from -100 to 100"),
        ("x", {"run_after": datetime(2026, 1, 1)}, "run_after has no time zone"),
        ("x", {"expires_at": datetime(2026, 1, 1)}, "expires_at has no time zone"),
        ("x", {"run_after": "2026-01-01T00:00:00Z"}, "run_after is str; it must be a datetime"),
        ("x", {"expires_at": date(2026, 1, 1)}, "expires_at is date; it must be a datetime"),
        ("x", {"run_after": 1_767_225_600}, "run_after is int; it must be a datetime"),
        ("x", {"run_after": datetime(9999, 12, 31, 23, tzinfo=UTC)}, "run_after is 9999-12-31T23.*more than 10 years"),
        ("x", {"expires_at": datetime.max.replace(tzinfo=WEST)}, "expires_at is 9999.*more than 10 years from now"),
        ("x", {"expires_at": datetime.min.replace(tzinfo=EAST)}, "expires_at is 0001.*more than 10 years from now"),
        ("x", {"run_after": timezone.now() + timedelta(days=3_660)}, "more than 10 years from now"),
        (
            "x",
            {"run_after": timezone.now() + timedelta(hours=2), "expires_at": timezone.now() + timedelta(hours=1)},
            "is not after run_after .*, so the task could never start",
        ),
        ("x", {"session_id": "s" * 201}, "at most 200 characters"),
        ("x", {"user_id": "a\x00"}, "user_id"),
        ("x", {"tags": "vip"}, "list"),
        ("x", {"webhook_url": "ftp://example.com/"}, "http"),
    ],
)
def test_a_bad_value_is_refused_with_a_sentence(payload: Any, options: dict[str, Any], sentence: str) -> None:
    world.prompt_kind()
    with pytest.raises(SubmitError, match=sentence):
        submit("ticket.triage", payload, **options)
    assert not Task.objects.exists()


@pytest.mark.django_db
def test_times_of_any_zone_are_taken() -> None:
    world.prompt_kind()
    start = (timezone.now() + timedelta(days=3_650)).astimezone(EAST)
    task = world.stored(submit("ticket.triage", "x", run_after=start, expires_at=start.astimezone(WEST) + HOUR).id)
    assert (task.run_after, task.expires_at) == (start, start + HOUR)


@pytest.mark.django_db
def test_an_offset_beyond_what_the_database_reads_is_taken() -> None:
    world.prompt_kind()
    start = (timezone.now() + HOUR).astimezone(fixed_offset(timedelta(hours=23, minutes=59)))
    assert world.stored(submit("ticket.triage", "x", run_after=start).id).run_after == start


@pytest.mark.django_db
def test_a_nul_spelled_out_is_no_nul() -> None:
    world.prompt_kind()
    assert world.stored(submit("ticket.triage", "C:\\u0000").id).payload == "C:\\u0000"


@pytest.mark.django_db
def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(SubmitError, match=r"no kind “gh\x00ost”"):
        submit("gh\x00ost", {})
    with pytest.raises(SubmitError, match=r"no kind “ghost”"):
        submit("ghost", {})


@pytest.mark.django_db
def test_many_are_all_or_none() -> None:
    world.prompt_kind()
    with pytest.raises(SubmitError):
        lifecycle.submit_many("ticket.triage", ["good", "bad\x00", "good"])
    assert not Task.objects.exists()
    assert len(lifecycle.submit_many("ticket.triage", [{"n": n} for n in range(1_200)])) == 1_200
    assert TaskEvent.objects.count() == 1_200


@pytest.mark.django_db
def test_an_idempotency_key_names_one_task() -> None:
    world.prompt_kind()
    first = submit("ticket.triage", {"n": 1}, idempotency_key="order-7")
    again = submit("ticket.triage", {"n": 2}, idempotency_key="order-7")
    assert again.id == first.id
    assert Task.objects.count() == TaskEvent.objects.count() == 1
    with pytest.raises(SubmitError, match="one task; 2 payloads"):
        lifecycle.submit_many("ticket.triage", [1, 2], idempotency_key="k")


@pytest.mark.django_db(transaction=True)
def test_two_submits_at_once_with_one_key_make_one_task() -> None:
    world.prompt_kind()
    ids: list[Any] = []
    started = threading.Barrier(2)

    def other() -> None:
        started.wait()
        ids.append(submit("ticket.triage", {}, idempotency_key="k").id)
        connection.close()

    thread = threading.Thread(target=other)
    with transaction.atomic():
        first = submit("ticket.triage", {}, idempotency_key="k")
        thread.start()
        started.wait()
        # The other one meets our uncommitted row in the unique index and waits for what becomes of it.
    thread.join(10)
    assert ids == [first.id]
    assert Task.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_transaction_leaves_no_task_no_event_no_wakeup(second_connection: psycopg.Connection) -> None:
    world.prompt_kind()
    second_connection.execute(f"LISTEN {CHANNEL}")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        submit("ticket.triage", {})
        raise ZeroDivisionError
    assert not Task.objects.exists()
    assert not TaskEvent.objects.exists()
    with transaction.atomic():
        submit("ticket.triage", {})
        assert list(second_connection.notifies(timeout=0.05)) == []
    # Exactly the committed one is heard; a notice of the first would have come before it.
    assert len(list(second_connection.notifies(timeout=5, stop_after=1))) == 1
    assert list(second_connection.notifies(timeout=0.05)) == []


@pytest.mark.django_db
def test_importing_submit_imports_no_model() -> None:
    import subprocess
    import sys

    code = "import sys; from tasks import submit, handler; sys.exit('django.db.models' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.django_db
def test_a_new_task_has_what_its_model_says() -> None:
    """Each column that nobody chose, and what is told of the row is what is stored."""
    told = lifecycle.submit(world.prompt_kind().name, {})
    stored, usual = Task.objects.get(), Task(kind_id=told.kind_id, payload={})
    chosen = {"id", "lane_id", "status", "run_after", "event_seq", "created_at", "status_at"}
    for field in Task._meta.concrete_fields:
        assert getattr(stored, field.attname) == getattr(told, field.attname), field.attname
        if field.attname not in chosen:
            assert getattr(stored, field.attname) == getattr(usual, field.attname), field.attname


@pytest.mark.django_db
def test_odd_texts_arrive_as_they_are() -> None:
    odd = ["it's", 'a "quote"', "{brace}", "back\\slash", "NULL", "é\u2028\n", "%s"]
    payload = {"text": odd, "big": 10**400, "small": 5e-324}
    task = lifecycle.submit(world.prompt_kind().name, payload, tags=[odd[0], *odd[2:]], session_id=odd[1])
    task.refresh_from_db()
    assert (task.payload, task.tags, task.session_id) == (payload, [odd[0], *odd[2:]], odd[1])


@pytest.mark.django_db(transaction=True)
def test_more_than_one_statement_can_carry_is_taken_all_or_none() -> None:
    """36 MB of payloads go in two statements."""
    kind = world.prompt_kind().name
    payloads = [f"{number:02}" + "x" * 900_000 for number in range(40)]
    with CaptureQueriesContext(connection) as asked:
        assert len({task.pk for task in lifecycle.submit_many(kind, payloads)}) == 40
    assert sum("INSERT INTO tasks_task " in query["sql"] for query in asked) == 2
    assert list(Task.objects.order_by("pk").values_list("payload", flat=True)) == payloads
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tasks_task ADD CONSTRAINT no_y CHECK (payload::text NOT LIKE '\"y%%') NOT VALID")
    try:
        with pytest.raises(IntegrityError):
            lifecycle.submit_many(kind, [*payloads, "y"])
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE tasks_task DROP CONSTRAINT no_y")
    assert Task.objects.count() == 40


@pytest.mark.django_db(transaction=True)
def test_a_caller_who_commits_by_hand_is_served(second_connection: psycopg.Connection) -> None:
    kind = world.prompt_kind().name
    transaction.set_autocommit(False)
    try:
        submit(kind, {})
        assert second_connection.execute("SELECT count(*) FROM tasks_task").fetchone() == (0,)
        transaction.commit()
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert second_connection.execute("SELECT count(*) FROM tasks_task").fetchone() == (1,)


@pytest.mark.django_db
def test_an_error_of_the_database_leaves_the_callers_transaction_usable() -> None:
    kind = world.prompt_kind().name
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tasks_task ADD CONSTRAINT none_at_all CHECK (false) NOT VALID")
    with pytest.raises(IntegrityError):
        submit(kind, {})
    assert Task.objects.count() == 0
