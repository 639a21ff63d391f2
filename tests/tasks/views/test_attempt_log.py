"""What a handler wrote, on the page of its task."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tasks.models import Attempt, AttemptLog, Task
from tasks.states import Outcome
from tasks.views.timeline import LINES_SHOWN
from tests.factories import make_attempt, make_task, make_user
from tests.tasks.views.doors import HTMX, signed_in

pytestmark = pytest.mark.django_db


def write(attempt: Attempt, *texts: str) -> None:
    """Lines of the attempt."""
    now = timezone.now()
    rows = [AttemptLog(attempt=attempt, seq=seq, at=now, text=text) for seq, text in enumerate(texts, 1)]
    AttemptLog.objects.bulk_create(rows)


def read(path: str, headers: dict[str, str] | None = None) -> str:
    """The page, as somebody who may only look sees it."""
    client = Client()
    client.force_login(User.objects.filter(username="vera").first() or make_user("vera", "view"))
    response = client.get(path, headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def page(task: Task) -> str:
    return read(f"/tasks/{task.pk}/")


def test_the_lines_of_the_newest_attempt_stand_under_it() -> None:
    task = make_task()
    first, second = make_attempt(task), make_attempt(task)
    write(first, "an old line")
    write(second, "read  pages=3", "two\nlines")
    shown = page(task)
    assert re.search(rf'id="attempt-{second.pk}".*<span>read  pages=3</span>.*<span>two\nlines</span>', shown, re.S)
    assert "an old line" not in shown
    assert f'id="log-{first.pk}"' in shown and "1 log line<" in shown


def test_many_lines_end_with_the_last_and_lead_to_all() -> None:
    task = make_task()
    attempt = make_attempt(task)
    write(attempt, *(f"line number {n}." for n in range(1, LINES_SHOWN + 6)))
    shown = page(task)
    assert "line number 5." not in shown and "line number 6." in shown
    assert f"All {LINES_SHOWN + 5} log lines" in shown
    address = f"/tasks/{task.pk}/attempts/{attempt.pk}/log/"
    assert f'href="{address}"' in shown
    assert "line number 1." in read(address)


def test_as_a_fragment_and_as_a_page() -> None:
    task = make_task()
    attempt = make_attempt(task)
    write(attempt, "a line")
    address = f"/tasks/{task.pk}/attempts/{attempt.pk}/log/"
    assert "<html" in read(address)
    fragment = read(address, HTMX)
    assert "<html" not in fragment and "a line" in fragment


def test_nothing_written_is_said() -> None:
    task = make_task()
    assert "The handler wrote nothing." in read(f"/tasks/{task.pk}/attempts/{make_attempt(task).pk}/log/")


def test_lines_are_masked_and_escaped() -> None:
    task = make_task()
    write(make_attempt(task), "<script>alert(1)</script> ana@example.com")
    shown = page(task)
    assert "&lt;script&gt;alert(1)" in shown and "<script>alert(1)" not in shown
    assert "ana@example.com" not in shown


def test_the_log_of_another_tasks_attempt_is_a_404() -> None:
    attempt = make_attempt(make_task())
    client = signed_in("vera", "view")
    assert client.get(f"/tasks/{make_task().pk}/attempts/{attempt.pk}/log/").status_code == 404


def test_who_may_not_look_is_sent_away() -> None:
    task = make_task()
    address = f"/tasks/{task.pk}/attempts/{make_attempt(task).pk}/log/"
    assert Client().get(address).status_code == 302
    assert signed_in("nora", None).get(address).status_code == 403


def test_a_task_without_lines_costs_nothing_and_one_with_many_one_query() -> None:
    task = make_task()
    attempts = [make_attempt(task, Outcome.FAILED) for _ in range(3)]
    client = signed_in("vera", "view")

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/tasks/{task.pk}/")
        return sum("tasks_attemptlog" in query["sql"] and "ORDER BY" in query["sql"] for query in queries)

    without = cost()
    for attempt in attempts:
        write(attempt, "one", "two", "three")
    assert cost() == without + 1
