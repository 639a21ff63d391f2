"""Cancel one task."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from tasks.models import OperatorAction, Task
from tasks.states import PENDING, Status
from tests.factories import make_task
from tests.tasks.views.doors import HTMX, refuses_a_missing_token, refuses_get, refuses_the_wrong_people, signed_in

pytestmark = pytest.mark.django_db


def url(task: Task) -> str:
    """The verb's address."""
    return reverse("cancel-task", args=[task.pk])


@pytest.mark.parametrize("status", sorted(PENDING - {Status.WAITING}))
def test_a_waiting_task_is_cancelled_at_once(status: Status) -> None:
    """And says so on its page, with an audit row."""
    task = make_task(status)
    response = signed_in().post(url(task), {"reason": "wrong customer"}, follow=True)
    task.refresh_from_db()
    assert task.status == Status.CANCELLED
    assert response.redirect_chain == [(f"/tasks/{task.pk}/", 303)]
    assert "The task is cancelled." in response.content.decode()
    row = OperatorAction.objects.get()
    assert (row.action, row.target_type, row.target_id) == ("cancel_task", "task", str(task.pk))
    assert (row.username, row.reason, row.count, row.outcome) == ("ana", "wrong customer", 1, "cancelled")
    assert task.events.order_by("-seq").values_list("type", "actor").first() == ("cancelled", "ana")


def test_a_running_tasks_worker_is_asked() -> None:
    """It stays running until its worker has aborted the call."""
    task = make_task(Status.RUNNING)
    response = signed_in().post(url(task), follow=True)
    task.refresh_from_db()
    assert task.status == Status.RUNNING and task.cancel_requested_at is not None
    page = response.content.decode()
    assert "Its worker was asked to abort the call" in page
    assert "Cancel was asked for" in page
    assert OperatorAction.objects.get().outcome == "asked its worker"


def test_to_htmx_it_answers_with_a_message_and_an_event() -> None:
    """The page stays; live regions refresh on ``acted``."""
    response = signed_in().post(url(make_task()), headers=HTMX)
    assert response.status_code == 200
    assert response.headers["HX-Trigger"] == '{"acted": {}}'
    assert '<hx-partial hx-target="#toasts" hx-swap="beforeend">' in response.content.decode()
    assert "The task is cancelled." in response.content.decode()


def test_asked_twice_it_says_so() -> None:
    """Nothing is asked again; the audit knows."""
    task = make_task(Status.RUNNING)
    Task.objects.filter(pk=task.pk).update(cancel_requested_at=timezone.now())
    response = signed_in().post(url(task), headers=HTMX)
    assert "Cancel was asked for already" in response.content.decode()
    assert (OperatorAction.objects.get().count, OperatorAction.objects.get().outcome) == (0, "was running")


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.DEAD, Status.CANCELLED, Status.SKIPPED])
def test_an_ended_task_stays_as_it_is(status: Status) -> None:
    """And the answer says why."""
    task = make_task(status)
    response = signed_in().post(url(task), headers=HTMX)
    task.refresh_from_db()
    assert task.status == status
    assert "It has ended: there is nothing to cancel." in response.content.decode()


def test_an_unknown_task_is_a_404() -> None:
    """Pruned, or never there."""
    assert signed_in().post("/tasks/0198c2e1-0000-7000-8000-000000000000/cancel/").status_code == 404


def test_doors() -> None:
    """GET, the wrong people, a missing token: refused, and nothing happens."""
    task = make_task()
    refuses_the_wrong_people(url(task))
    refuses_get(url(task))
    refuses_a_missing_token(url(task))
    task.refresh_from_db()
    assert task.status == Status.READY
