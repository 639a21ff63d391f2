"""POST /api/v1/tasks/{id}/cancel."""

from __future__ import annotations

import pytest

from tasks.models import Task, TaskEvent
from tasks.states import Status
from tests.factories import make_task
from tests.tasks.api.keys import caller

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", [Status.READY, Status.SCHEDULED, Status.RETRYABLE, Status.UNKNOWN])
def test_a_task_that_waits(status: Status) -> None:
    task = make_task(status)
    response = caller().post(f"/tasks/{task.pk}/cancel")
    assert response.status_code == 202
    assert response.json() == {"id": str(task.pk), "status": "cancelled", "outcome": "cancelled"}
    assert TaskEvent.objects.filter(task=task).latest("seq").actor == "key shop"


def test_a_task_that_runs_is_asked_for_and_again_is_the_same() -> None:
    task = make_task(Status.RUNNING)
    program = caller()
    for _time in range(2):
        response = program.post(f"/tasks/{task.pk}/cancel")
        assert (response.status_code, response.json()["outcome"]) == (202, "requested")
    assert Task.objects.get(pk=task.pk).cancel_requested_at is not None


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.DEAD, Status.CANCELLED, Status.SKIPPED])
def test_a_task_that_has_ended(status: Status) -> None:
    task = make_task(status)
    response = caller().post(f"/tasks/{task.pk}/cancel")
    assert response.status_code == 409
    assert response.json()["detail"] == f"The task is {status.value} and cannot be cancelled."
