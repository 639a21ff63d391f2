"""The list of tasks."""

from __future__ import annotations

import re

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tasks import lifecycle
from tasks.models import Task
from tasks.states import Status
from tasks.views import limits
from tests.factories import make_kind, make_task, make_user, make_worker
from tests.tasks.views.doors import signed_in

pytestmark = pytest.mark.django_db

PARTIAL = {"HX-Request": "true", "HX-Request-Type": "partial"}


def rows(page: str) -> list[str]:
    """The ids of the rows, in their order."""
    return re.findall(r'<tr id="task-([0-9a-f-]{36})"', page)


def cells(page: str, task: Task) -> str:
    """The text of a task's row, one space between its parts."""
    row = re.search(rf'<tr id="task-{task.pk}".*?</tr>', page, re.DOTALL)
    assert row
    return " ".join(re.sub(r"<[^>]+>", " ", row[0]).split())


def read(query: str = "", **headers: str) -> str:
    """The page."""
    client = signed_in() if not User.objects.exists() else Client()
    client.force_login(User.objects.get(username="ana"))
    return client.get(f"/tasks/{query}", headers=headers).content.decode()


def test_a_row_tells_what_matters() -> None:
    """Status, kind, short id, subject, attempt of its budget, waited, ran, cost."""
    task = make_task(Status.SUCCEEDED, subject="Wrong invoice", cost="0.0112")
    text = cells(read(), task)
    assert "succeeded ticket.triage" in text and str(task.pk)[-8:] in text and "Wrong invoice" in text
    assert "1/3 1.0 s 2.0 s" in text and "$0.0112" in text


def test_a_retry_tells_its_code_and_time() -> None:
    """And how much of the budget is gone."""
    task = make_task(Status.RETRYABLE)
    text = cells(read(), task)
    assert "AI_UPSTREAM_5XX" in text and "1/3" in text and re.search(r"in 1[34] s", text)


def test_a_second_cycle_is_told() -> None:
    """“cycle 2 · 0/3”."""
    task = make_task(cycle=2)
    assert "cycle 2 · 0/3" in cells(read(), task)


def test_what_holds_a_ready_task_back_is_told() -> None:
    """Kind paused, provider on hold, no worker: in the row."""
    one = make_task()
    two = make_task(kind=make_kind("invoice.check", handler="invoices.check"))
    assert "no worker runs this kind" in cells(read(), one)
    make_worker()
    assert "no worker runs this kind" not in cells(read(), one)
    assert "no worker runs this kind" in cells(read(), two)
    make_worker(handlers=["invoices.check"])
    assert "no worker runs this kind" not in cells(read(), two)
    lifecycle.hold_provider("acme", by="redrive", reason="bad key")
    assert "provider acme on hold" in cells(read(), one)
    lifecycle.pause_kind("ticket.triage", by="ana", reason="x")
    assert "kind paused" in cells(read(), one)


def test_newest_first_fifty_a_page_and_on() -> None:
    """By keyset, the filter kept in the links."""
    tasks = [make_task(ago=ago) for ago in range(1, 53)]
    page = read("?status=ready")
    assert rows(page) == [str(task.pk) for task in tasks[:50]]
    assert f'href="?status=ready&amp;before={tasks[49].pk}"' in page
    assert rows(read(f"?status=ready&before={tasks[49].pk}")) == [str(task.pk) for task in tasks[50:]]


def test_the_filter_narrows_and_is_shown() -> None:
    """In the form, as chips, in the tabs."""
    task = make_task(Status.DEAD)
    make_task()
    page = read("?status=dead&kind=ticket.triage")
    assert rows(page) == [str(task.pk)]
    assert 'aria-label="Remove the filter Kind"' in page
    assert '<option value="ticket.triage" selected>' in page
    assert re.search(r'href="/tasks/\?status=dead&amp;kind=ticket.triage" aria-current="true"', page)
    assert 'href="/tasks/?status=ready&amp;kind=ticket.triage">' in page


def test_a_bad_value_gives_a_sentence() -> None:
    """Not an error, and not a wider list."""
    make_task()
    page = read("?since=soon")
    assert rows(page) == []
    assert "Since: “soon” is no time." in page and "Mend or clear the filter above." in page


def test_empty_states() -> None:
    """Nothing yet; nothing that matches."""
    assert "No task yet" in read() and "manage.py submit ticket.triage" in read()
    make_task()
    assert "No task matches" in read("?status=dead")


@pytest.mark.django_db(transaction=True)
def test_a_slow_search_ends_in_a_sentence(
    second_connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database stops it: here it waits for a lock on the table, as a search waits for a disk."""
    make_task()
    monkeypatch.setattr(limits, "PATIENCE", 0.3)
    with second_connection.transaction():
        second_connection.execute("LOCK TABLE tasks_task IN ACCESS EXCLUSIVE MODE")
        page = read("?q=x")
    assert "This search took too long and was stopped" in page and "name a kind, a code or a status" in page


def test_to_htmx_only_the_list_comes_with_its_own_address() -> None:
    """The partial; ``Vary`` keeps it out of the history's cache; blanks leave the address."""
    client = signed_in()
    response = client.get("/tasks/?q=&status=ready&kind=", headers=PARTIAL)
    text = response.content.decode().strip()
    assert text.startswith('<div id="task-list">') and "<html" not in text
    assert response.headers["HX-Push-Url"] == "/tasks/?status=ready"
    assert {"HX-Request", "HX-Request-Type"} <= set(response.headers["Vary"].split(", "))


def test_a_restored_page_is_whole() -> None:
    """htmx asks for it without HX-Request when somebody goes back."""
    assert "<html" in read(**{"HX-History-Restore-Request": "true", "HX-Request-Type": "full"})


def test_who_may_only_look_gets_no_ticks() -> None:
    """Nor the form behind them."""
    make_task()
    page = signed_in("vera", "view").get("/tasks/").content.decode()
    assert 'class="tick"' not in page and 'id="bulk"' not in page


def test_personal_data_in_a_subject_is_masked() -> None:
    """As everywhere on display."""
    task = make_task(subject="Mail jane.roe@example.com back")
    assert "jane.roe@example.com" not in cells(read(), task)


@pytest.mark.parametrize("path", ["/tasks/", "/tasks/?status=ready&q=again&tag=vip"])
def test_queries_do_not_grow_with_the_rows(path: str) -> None:
    """One page costs the same with 2 rows and with 40; payload and result stay where they are."""
    client = Client()
    client.force_login(make_user())
    make_worker()  # without one nothing else keeps tasks waiting
    for number in range(2):
        make_task(tags=["vip"], kind=f"kind.{number}")
    with CaptureQueriesContext(
        connection,
    ) as few:
        client.get(path)
    for number in range(38):
        make_task([Status.READY, Status.RUNNING, Status.DEAD][number % 3], tags=["vip"], kind=f"kind.{number % 7}")
    with CaptureQueriesContext(connection) as many:
        client.get(path)
    assert len(many) == len(few) <= 20
    selected = [query["sql"] for query in many.captured_queries if 'FROM "tasks_task"' in query["sql"]]
    assert selected and not any('"tasks_task"."payload"' in sql or '."prompt"' in sql for sql in selected)
