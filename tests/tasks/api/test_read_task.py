"""GET /api/v1/tasks/{id}."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tasks.models import Attempt, Task
from tasks.states import Status
from tests.deadletters import deaths
from tests.factories import make_task
from tests.tasks.api.keys import caller

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", [status for status in Status if status != Status.WAITING])
def test_every_status_is_told(status: Status) -> None:
    task = make_task(status)
    body = caller().get(f"/tasks/{task.pk}").json()
    assert (body["id"], body["kind"], body["status"], body["cycle"]) == (str(task.pk), "ticket.triage", status.value, 1)
    assert (body["error"] is not None) == (status == Status.DEAD)
    assert (body["finished_at"] is not None) == (task.finished_at is not None)


def test_a_result() -> None:
    deaths.submit()
    deaths.run(outcome=deaths.Outcome.SUCCEEDED, result_text='{"team": "billing"}')
    task = Task.objects.get()
    assert caller().get(f"/tasks/{task.pk}").json()["result"] == {"team": "billing"}


def test_a_death_says_what_the_catalogue_says_and_nothing_of_the_error() -> None:
    deaths.submit()
    deaths.run()
    task = Task.objects.get()
    response = caller().get(f"/tasks/{task.pk}")
    error = response.json()["error"]
    assert (error["code"], error["reason"]) == ("AI_PROVIDER_ERROR", "not_retryable") and error["message"]
    assert Attempt.objects.get().last_error
    for secret in (b"on fire", b"Traceback", b"req-7"):
        assert secret not in response.content


@pytest.mark.parametrize("path", [f"/tasks/{UUID(int=7)}", f"/tasks/{UUID(int=7)}/cancel"])
def test_an_unknown_task(path: str) -> None:
    program = caller()
    response = program.post(path) if path.endswith("cancel") else program.get(path)
    assert (response.status_code, response.json()["detail"]) == (404, "There is no such task.")


def test_two_queries() -> None:
    """The key and the task."""
    task = make_task(Status.RUNNING)
    program = caller()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        program.get(f"/tasks/{task.pk}")
    assert len(queries) == 2
