"""POST /api/v1/tasks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from tasks.models import Task
from tasks.states import Status
from tests.factories import make_kind
from tests.tasks.api.keys import caller

pytestmark = pytest.mark.django_db


def test_a_task_is_taken() -> None:
    make_kind(priority=3)
    response = caller().post("/tasks", {"kind": "ticket.triage", "payload": {"subject": "Late", "text": "again"}})
    assert response.status_code == 202
    task = Task.objects.get()
    assert response.json() == {
        "id": str(task.pk),
        "status": "ready",
        "status_url": f"/api/v1/tasks/{task.pk}",
        "events_url": f"/api/v1/tasks/{task.pk}/events",
    }
    assert (task.payload, task.subject, task.priority) == ({"subject": "Late", "text": "again"}, "Late", 3)


def test_every_field_arrives() -> None:
    make_kind()
    later = timezone.now() + timedelta(hours=1)
    body = {
        "kind": "ticket.triage",
        "payload": None,
        "priority": -7,
        "run_after": later.isoformat(),
        "expires_at": (later + timedelta(hours=1)).isoformat(),
        "session_id": "s-1",
        "user_id": "u-1",
        "trace_id": "t-1",
        "tags": ["vip"],
        "webhook_url": "https://example.com/hook",
    }
    response = caller().post("/tasks", body)
    assert (response.status_code, response.json()["status"]) == (202, "scheduled")
    task = Task.objects.get()
    assert task.payload is None and task.status == Status.SCHEDULED
    assert (task.priority, task.session_id, task.user_id, task.trace_id) == (-7, "s-1", "u-1", "t-1")
    assert (task.tags, task.webhook_url, task.run_after) == (["vip"], "https://example.com/hook", later)


@pytest.mark.parametrize("payload", [0, "", [], {}, False, "漢字", 1.5, [None]])
def test_any_json_is_a_payload(payload: Any) -> None:
    make_kind()
    assert caller().post("/tasks", {"kind": "ticket.triage", "payload": payload}).status_code == 202
    assert Task.objects.get().payload == payload


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"payload": 1}, "kind: Field required"),
        ({"kind": "ticket.triage"}, "payload: Field required"),
        ({"kind": "ticket.triage", "payload": 1, "prioritty": 2}, "prioritty: Extra inputs are not permitted"),
        ({"kind": "ticket.triage", "payload": 1, "priority": "high"}, "priority: Input should be a valid integer"),
        ({"kind": "ticket.triage", "payload": 1, "priority": 101}, "whole number from -100 to 100"),
        ({"kind": "ticket.triage", "payload": 1, "run_after": "2027-01-01T00:00"}, "run_after: Input should have"),
        ({"kind": "ticket.triage", "payload": 1, "session_id": "s" * 201}, "session_id: String should have"),
        ({"kind": "ticket.triage", "payload": 1, "tags": "vip"}, "tags: Input should be a valid tuple"),
        ({"kind": "ticket.triage", "payload": 1, "webhook_url": "ftp://x"}, "webhook_url is not an http or https URL."),
        ({"kind": "nobody.knows", "payload": 1}, "There is no kind “nobody.knows”."),
        ({"kind": "ticket.triage", "payload": "a\x00b"}, "NUL"),
        ({"kind": "a\x00b", "payload": 1}, "There is no kind"),
        ({"kind": "a\ud800b", "payload": 1}, "There is no kind “a?b”."),
        ({"kind": "ticket.triage", "payload": "\ud800"}, "lone surrogate"),
        ({"kind": "ticket.triage", "payload": float("nan")}, "not JSON"),
        ({"kind": "ticket.triage", "payload": "x" * 1_048_576}, "at most 1048576 are taken"),
        ([1, 2], "Input should be"),
    ],
)
def test_what_cannot_be_taken_is_said(body: Any, detail: str) -> None:
    make_kind()
    response = caller().post("/tasks", body)
    assert response.status_code == 422 and detail in response.json()["detail"], response.content
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "Field required"),
        (b"{", "cannot be read as JSON"),
        (b"\xff\xfe{}", "cannot be read as JSON"),
        (b"[" * 100_000, "cannot be read as JSON"),
        (b'{"kind": "ticket.triage", "payload": ' + b"9" * 5_000 + b"}", "cannot be read as JSON"),
    ],
)
def test_a_body_that_is_no_json(body: bytes, detail: str) -> None:
    make_kind()
    response = caller().post("/tasks", body)
    assert response.status_code in (400, 422) and detail in response.json()["detail"], response.content


def test_a_body_that_is_too_large() -> None:
    make_kind()
    response = caller().post("/tasks", b'{"payload": "' + b"x" * 5_000_000 + b'"}')
    assert response.status_code == 413 and "at most 1 MiB" in response.json()["detail"]


def test_the_same_idempotency_key_is_the_same_task() -> None:
    make_kind()
    program, body = caller(), {"kind": "ticket.triage", "payload": {"n": 1}}
    first = program.post("/tasks", body, Idempotency_Key="order-7").json()
    again = program.post("/tasks", body, Idempotency_Key="order-7")
    assert again.status_code == 202 and again.json()["id"] == first["id"]
    assert Task.objects.count() == 1


def test_an_idempotency_key_used_for_something_else() -> None:
    make_kind()
    program = caller()
    program.post("/tasks", {"kind": "ticket.triage", "payload": 1}, Idempotency_Key="order-7")
    other = program.post("/tasks", {"kind": "ticket.triage", "payload": 2}, Idempotency_Key="order-7")
    assert other.status_code == 422 and "another payload" in other.json()["detail"]
    assert Task.objects.get().payload == 1


@pytest.mark.parametrize(("first", "second"), [(1, True), (0, False), ({"paid": [True]}, {"paid": [1]}), (1, [1])])
def test_an_idempotency_key_used_for_what_only_python_calls_equal(first: Any, second: Any) -> None:
    make_kind()
    program = caller()
    program.post("/tasks", {"kind": "ticket.triage", "payload": first}, Idempotency_Key="order-7")
    other = program.post("/tasks", {"kind": "ticket.triage", "payload": second}, Idempotency_Key="order-7")
    assert other.status_code == 422 and "another payload" in other.json()["detail"]


@pytest.mark.parametrize("payload", [1e22, 1.0, -0.0, 0.1, [{"b": None, "a": False}], 9_007_199_254_740_993])
def test_the_same_payload_sent_again_is_the_same_however_it_is_stored(payload: Any) -> None:
    make_kind()
    program, body = caller(), {"kind": "ticket.triage", "payload": payload}
    answers = [program.post("/tasks", body, Idempotency_Key="order-7") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]


@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "multipart/form-data; boundary=x"],
)
def test_the_body_is_json_whatever_it_is_called(content_type: str) -> None:
    make_kind()
    response = caller().post("/tasks", {"kind": "ticket.triage", "payload": 1}, Content_Type=content_type)
    assert response.status_code == 202, response.content


def test_time_zones_are_kept() -> None:
    make_kind()
    year = timezone.now().year + 1
    caller().post("/tasks", {"kind": "ticket.triage", "payload": 1, "run_after": f"{year}-06-01T00:00:00+02:00"})
    assert Task.objects.get().run_after == datetime(year, 5, 31, 22, tzinfo=UTC)
