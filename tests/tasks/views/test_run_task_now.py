"""Run one task now that waits for its time."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tasks.models import OperatorAction, Task
from tasks.states import Status
from tests.factories import make_task
from tests.tasks.views.doors import HTMX, refuses_a_missing_token, refuses_get, refuses_the_wrong_people, signed_in

pytestmark = pytest.mark.django_db


def url(task: Task) -> str:
    """The verb's address."""
    return f"/tasks/{task.pk}/run-now/"


@pytest.mark.parametrize("status", [Status.SCHEDULED, Status.RETRYABLE])
def test_a_task_that_waits_for_its_time_is_ready(status: Status) -> None:
    """Its budget is what it was; its history and the audit say who."""
    task = make_task(status)
    assert task.run_after > timezone.now()
    response = signed_in().post(url(task), {"reason": "they wait for it"}, follow=True)
    assert "It is ready; a worker takes it as soon as one is free." in response.content.decode()
    now = Task.objects.get(pk=task.pk)
    assert (now.status, now.failures, now.cycle) == (Status.READY, task.failures, task.cycle)
    assert now.run_after <= timezone.now()
    assert task.events.order_by("-seq").values_list("type", "actor", "to_status").first() == ("run_now", "ana", "ready")
    row = OperatorAction.objects.get()
    assert (row.action, row.target_id, row.count, row.outcome) == ("run_task_now", str(task.pk), 1, "ready")
    assert row.reason == "they wait for it"
    assert "told to run now by ana" in signed_in("bea").get(f"/tasks/{task.pk}/").content.decode()


@pytest.mark.parametrize("status", [Status.READY, Status.RUNNING, Status.SUCCEEDED, Status.DEAD, Status.CANCELLED])
def test_what_does_not_wait_for_a_time_stays_as_it_is(status: Status) -> None:
    """And the answer says why."""
    task = make_task(status)
    response = signed_in().post(url(task), headers=HTMX)
    assert f"It is {status.value}: it does not wait for a time." in response.content.decode()
    assert Task.objects.get(pk=task.pk).status == status
    assert (OperatorAction.objects.get().count, OperatorAction.objects.get().outcome) == (0, f"was {status.value}")


@pytest.mark.parametrize("status", [status for status in Status if status != Status.WAITING])
def test_the_button_stands_where_it_works(status: Status) -> None:
    """And nowhere else."""
    page = signed_in().get(f"/tasks/{make_task(status).pk}/").content.decode()
    assert ("Run now" in page) == (status in (Status.SCHEDULED, Status.RETRYABLE))


def test_doors() -> None:
    """GET, the wrong people, a missing token; an unknown task."""
    task = make_task(Status.SCHEDULED)
    refuses_the_wrong_people(url(task))
    refuses_get(url(task))
    refuses_a_missing_token(url(task))
    assert Task.objects.get(pk=task.pk).status == Status.SCHEDULED
    assert signed_in("zoe").post("/tasks/0198c2e1-0000-7000-8000-000000000000/run-now/").status_code == 404
