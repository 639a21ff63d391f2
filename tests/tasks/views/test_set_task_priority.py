"""Give one task another priority."""

from __future__ import annotations

import pytest

from tasks import lifecycle
from tasks.models import OperatorAction, Task
from tasks.states import FINAL, Status
from tests.factories import make_task
from tests.tasks.lifecycle import world
from tests.tasks.views.doors import HTMX, refuses_a_missing_token, refuses_get, refuses_the_wrong_people, signed_in

pytestmark = pytest.mark.django_db


def url(task: Task) -> str:
    """The verb's address."""
    return f"/tasks/{task.pk}/priority/"


def test_it_is_claimed_before_the_others() -> None:
    """With a line in its history, and the audit."""
    world.prompt_kind()
    first, last = lifecycle.submit_many("ticket.triage", [{"n": 1}, {"n": 2}])
    response = signed_in().post(url(last), {"priority": "50", "reason": "the boss waits"}, follow=True)
    page = response.content.decode()
    assert "Its priority is 50." in page
    assert "given another priority by ana" in page and "0 → 50" in page
    row = OperatorAction.objects.get()
    assert (row.action, row.count, row.outcome, row.reason) == ("set_task_priority", 1, "priority 50", "the boss waits")
    assert [task.task_id for task in lifecycle.claim(world.worker(), 1, [])] == [last.pk]
    assert Task.objects.get(pk=first.pk).priority == 0


@pytest.mark.parametrize("text", ["", "high", "101", "-101", "1.5", "1e2", "99999999999999999999"])
def test_what_is_no_priority_is_refused(text: str) -> None:
    """The sheet stays open."""
    task = make_task()
    response = signed_in().post(url(task), {"priority": text}, headers=HTMX)
    assert response.status_code == 422
    assert "A priority is a whole number from -100 to 100." in response.content.decode()
    assert Task.objects.get(pk=task.pk).priority == 0 and not OperatorAction.objects.exists()


def test_the_priority_that_it_has_changes_nothing() -> None:
    """No event is written."""
    task = make_task()
    events = task.events.count()
    assert (
        "It has that priority already." in signed_in().post(url(task), {"priority": "0"}, headers=HTMX).content.decode()
    )
    assert task.events.count() == events and OperatorAction.objects.get().count == 0


@pytest.mark.parametrize("status", [status for status in Status if status != Status.WAITING])
def test_every_status(status: Status) -> None:
    """Whatever has not ended takes it, and its page offers it."""
    task = make_task(status)
    page = signed_in().get(f"/tasks/{task.pk}/").content.decode()
    assert ("Priority…" in page) == (status not in FINAL)
    answer = signed_in("bea").post(url(task), {"priority": "7"}, headers=HTMX).content.decode()
    assert ("It has ended" in answer) == (status in FINAL)
    assert Task.objects.get(pk=task.pk).priority == (0 if status in FINAL else 7)


def test_doors() -> None:
    """GET, the wrong people, a missing token."""
    task = make_task()
    refuses_the_wrong_people(url(task))
    refuses_get(url(task))
    refuses_a_missing_token(url(task))
    assert Task.objects.get(pk=task.pk).priority == 0
