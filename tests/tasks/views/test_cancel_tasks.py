"""Cancel the ticked tasks."""

from __future__ import annotations

import pytest

from tasks.models import OperatorAction, Task
from tasks.states import Status
from tests.factories import make_task
from tests.tasks.views.doors import HTMX, refuses_a_missing_token, refuses_get, refuses_the_wrong_people, signed_in

pytestmark = pytest.mark.django_db
URL = "/tasks/cancel/"


def test_exactly_the_ticked_ones_are_cancelled() -> None:
    """With one audit row that names them and the count."""
    ticked, other = [make_task(), make_task(Status.RETRYABLE)], make_task()
    ids = [str(task.pk) for task in ticked]
    response = signed_in().post(URL, {"id": ids, "reason": "test data", "next": "/tasks/?kind=ticket.triage"})
    assert (response.status_code, response.headers["Location"]) == (303, "/tasks/?kind=ticket.triage")
    assert set(Task.objects.filter(status=Status.CANCELLED)) == set(ticked)
    other.refresh_from_db()
    assert other.status == Status.READY
    row = OperatorAction.objects.get()
    assert (row.action, row.count, row.reason, row.filter) == ("cancel_tasks", 2, "test data", {"ids": ids})
    assert row.outcome == "2 of 2 cancelled"


def test_those_that_ended_before_are_told() -> None:
    """In the same sentence."""
    tasks = [make_task(), make_task(Status.SUCCEEDED)]
    response = signed_in().post(URL, {"id": [str(task.pk) for task in tasks], "reason": "x"}, headers=HTMX)
    assert "1 task is cancelled; 1 had ended before." in response.content.decode()


def test_without_a_tick_it_says_what_to_do() -> None:
    """A bad form, not an action: no audit row."""
    response = signed_in().post(URL, {"id": ["nonsense"]}, headers=HTMX)
    assert response.status_code == 422
    assert "Tick the tasks first." in response.content.decode()
    assert "HX-Trigger" not in response.headers
    assert not OperatorAction.objects.exists()


def test_without_a_reason_nothing_happens() -> None:
    """Many at once always have a reason."""
    response = signed_in().post(URL, {"id": [str(make_task().pk)], "reason": " "}, headers=HTMX)
    assert response.status_code == 422
    assert "Give a reason for cancelling them." in response.content.decode()
    assert Task.objects.get().status == Status.READY


def test_a_way_back_to_elsewhere_is_not_taken() -> None:
    """``next`` leads nowhere but here."""
    response = signed_in().post(URL, {"id": [str(make_task().pk)], "reason": "x", "next": "https://elsewhere.example/"})
    assert response.headers["Location"] == "/tasks/"


def test_doors() -> None:
    """GET, the wrong people, a missing token."""
    ids = [str(make_task().pk)]
    refuses_the_wrong_people(URL, id=ids)
    refuses_get(URL)
    refuses_a_missing_token(URL, id=ids)
    assert Task.objects.get().status == Status.READY
