"""The list of what people did."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from tasks import audit
from tasks.models import OperatorAction
from tasks.models.ids import uuid7
from tests.factories import make_task, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana() -> User:
    """Who did it."""
    return make_user()


def read(query: str = "", **headers: str) -> str:
    """The page as somebody sees it who may look."""
    client = Client()
    client.force_login(User.objects.filter(username="vera").first() or make_user("vera", "view"))
    return client.get(f"/audit/{query}", headers=headers).content.decode()


def actions(page: str) -> list[int]:
    """The ids of the rows, in their order."""
    return [int(found) for found in re.findall(r'<tr id="action-(\d+)"', page)]


def test_empty() -> None:
    """Says what comes here."""
    assert "Nothing was done yet" in read()


def test_a_row_tells_all(ana: User) -> None:
    """Who, what, on what (a task is a link), why, how many, what came of it, the exact filter."""
    task = make_task()
    audit.record(
        ana, "cancel_task", target_type="task", target_id=task.pk, reason="wrong customer", outcome="cancelled"
    )
    audit.record(ana, "cancel_tasks", target_type="task", count=12, filter={"ids": ["a", "b"]})
    page = read()
    assert f'href="/tasks/{task.pk}/"' in page and "wrong customer" in page and "cancel task" in page
    assert "The exact filter" in page and "&quot;a&quot;" in page and ">12<" in page


def test_what_was_acted_on_is_named_whole_and_linked(ana: User) -> None:
    """A letter by its page, a kind and a provider by their row; a name is not cut as an id is."""
    letter = uuid7()
    audit.record(ana, "discard_letter", target_type="letter", target_id=letter)
    audit.record(ana, "pause_kind", target_type="kind", target_id="ticket.triage")
    audit.record(ana, "hold_provider", target_type="provider", target_id="acme")
    audit.record(ana, "add_error_rule", target_type="errorrule", target_id="7")
    page = read()
    assert f'href="/dead-letters/{letter}/"' in page
    assert 'href="/kinds/#kind-ticket.triage"' in page and ">ticket.triage<" in page
    assert 'href="/kinds/#provider-acme"' in page
    assert ">error rule<" in page


def test_filters(ana: User) -> None:
    """By who, action, target and time."""
    one = audit.record(ana, "pause_kind", target_type="kind", target_id="a.b")
    two = audit.record(make_user("bea"), "resume_kind", target_type="kind", target_id="c.d")
    old = OperatorAction.objects.create(
        user=ana, username="ana", action="pause_kind", at=timezone.now() - timedelta(days=2), outcome="done"
    )
    assert actions(read("?who=ana")) == [old.pk, one.pk]
    assert actions(read("?action=resume_kind")) == [two.pk]
    assert actions(read("?target=a.b")) == [one.pk]
    assert actions(read("?since=24h")) == [two.pk, one.pk]
    assert actions(read("?until=24h")) == [old.pk]


def test_nothing_matches_and_nothing_is_understood(ana: User) -> None:
    """Two different sentences."""
    audit.record(ana, "pause_kind")
    assert "No action matches" in read("?who=zoe")
    assert "no time" in read("?since=soon") and "Nothing is shown" in read("?since=soon")


def test_pages_by_keyset(ana: User) -> None:
    """Fifty a page."""
    rows = [audit.record(ana, "x") for _ in range(51)]
    page = read("?who=ana")
    assert actions(page) == [row.pk for row in rows[:0:-1]]
    assert f'href="?who=ana&amp;before={rows[1].pk}"' in page
    assert actions(read(f"?who=ana&before={rows[1].pk}")) == [rows[0].pk]


def test_to_htmx_only_the_list(ana: User) -> None:
    """With its own address."""
    audit.record(ana, "x")
    part = read("?who=ana&action=", **{"HX-Request": "true", "HX-Request-Type": "partial"})
    assert part.strip().startswith('<div id="audit-list">')
