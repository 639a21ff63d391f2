"""GET /metrics, read as Prometheus reads it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from tasks import lifecycle
from tasks.metric_names import FAMILIES
from tasks.models import Task
from tasks.states import Status
from tests.deadletters import deaths
from tests.factories import make_task, make_user, make_worker
from tests.tasks.api.keys import make_key

pytestmark = pytest.mark.django_db


def samples(client: Client) -> dict[tuple[str, ...], float]:
    """(name, label values in the order of the labels' names …) → value."""
    response = client.get("/metrics")
    assert response.status_code == 200, response.content
    families = text_string_to_metric_families(response.content.decode())
    return {
        (one.name, *(one.labels[name] for name in sorted(one.labels))): one.value
        for family in families
        for one in family.samples
    }


def test_the_counts(client: Client) -> None:
    for _number in range(3):
        deaths.submit()
    deaths.run(cost="0.5")
    deaths.succeed()
    found = samples(client)
    assert found["redrive_tasks", "ticket.triage", "ready"] == 1
    assert found["redrive_tasks", "ticket.triage", "dead"] == 1
    assert found["redrive_tasks_submitted_total", "ticket.triage"] == 3
    assert found["redrive_tasks_ended_total", "AI_PROVIDER_ERROR", "ticket.triage", "dead"] == 1
    assert found["redrive_attempts_ended_total", "", "ticket.triage", "succeeded"] == 1
    assert found["redrive_attempt_seconds_count", "ticket.triage"] == 2
    assert found["redrive_attempt_seconds_bucket", "ticket.triage", "+Inf"] == 2
    assert found["redrive_cost_usd_total", "ticket.triage"] == 0.5


def test_the_queue_and_the_processes(client: Client) -> None:
    make_task(Status.READY, ago=90)
    make_worker(slots=7, running=3)
    make_worker(slots=50, lease=-1)
    found = samples(client)
    assert found["redrive_queue_age_seconds", "ticket.triage", "acme"] == pytest.approx(90, abs=30)
    assert found["redrive_processes", "worker"] == 1
    assert (found["redrive_slots",], found["redrive_slots_busy",]) == (7, 3)


def test_what_is_stopped(client: Client) -> None:
    make_task()
    lifecycle.pause_kind("ticket.triage", by="ana", reason="wrong language")
    lifecycle.hold_provider("acme", by="ana", reason="bad key")
    found = samples(client)
    assert found["redrive_stopped", "paused", "ticket.triage", "kind"] == 1
    assert found["redrive_stopped", "held", "acme", "provider"] == 1
    assert found["redrive_stopped", "cooling", "acme", "provider"] == 0


def test_every_metric_that_is_explained_is_there(client: Client) -> None:
    """And no other."""
    text = client.get("/metrics").content.decode()
    told = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert told == {family.name for family in FAMILIES}


def test_an_empty_system(client: Client) -> None:
    found = samples(client)
    assert found["redrive_slots",] == 0


def test_names_of_people_and_texts_stay_away(client: Client) -> None:
    make_task(Status.DEAD, user_id="u-secret", session_id="s-secret", subject="secret subject")
    assert b"secret" not in client.get("/metrics").content


@pytest.mark.parametrize(
    ("door", "status"),
    [
        *(("nobody", 401), ("wrong key", 401), ("key", 200), ("viewer", 200)),
        *(("stranger", 401), ("proxy", 401), ("here", 200)),
    ],
)
def test_who_may_read(client: Client, door: str, status: int) -> None:
    more: dict[str, Any] = {"REMOTE_ADDR": "10.0.0.9", "headers": {}}
    if door in ("viewer", "stranger"):
        client.force_login(make_user("eva", "view" if door == "viewer" else None))
    elif door == "here":
        more["REMOTE_ADDR"] = "127.0.0.1"
    elif door == "proxy":
        more |= {"REMOTE_ADDR": "127.0.0.1", "headers": {"X-Forwarded-For": "203.0.113.9"}}
    elif door != "nobody":
        more["headers"] = {"Authorization": f"Bearer {make_key() if door == 'key' else 'redrive_x'}"}
    assert client.get("/metrics", **more).status_code == status


def test_scrapes_ask_a_fixed_number_of_questions(client: Client, django_assert_num_queries: Any) -> None:
    for number in range(5):
        make_task(kind=f"kind.{number}")
    assert Task.objects.count() == 5
    with django_assert_num_queries(4):
        client.get("/metrics")
