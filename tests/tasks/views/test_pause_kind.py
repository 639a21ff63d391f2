"""Pause a kind."""

from __future__ import annotations

import pytest

from tasks import lifecycle
from tasks.models import Kind, OperatorAction
from tests.factories import make_kind
from tests.tasks.views.doors import HTMX, refuses_a_missing_token, refuses_get, refuses_the_wrong_people, signed_in

pytestmark = pytest.mark.django_db
URL = "/kinds/ticket.triage/pause/"


def test_it_pauses_with_a_reason() -> None:
    """Shown on the page with who and why, and in the audit."""
    make_kind()
    response = signed_in().post(URL, {"reason": "wrong language"}, follow=True)
    kind = Kind.objects.get()
    assert kind.paused_at is not None and (kind.paused_by, kind.pause_reason) == ("ana", "wrong language")
    assert response.redirect_chain == [("/kinds/", 303)]
    page = response.content.decode()
    assert "ticket.triage is paused: nothing more starts, what runs goes on." in page
    assert "Paused by ana" in page and "wrong language" in page
    row = OperatorAction.objects.get()
    assert (row.action, row.target_type, row.target_id) == ("pause_kind", "kind", "ticket.triage")
    assert (row.reason, row.count, row.outcome) == ("wrong language", 1, "done")


@pytest.mark.parametrize("reason", ["", "   "])
def test_without_a_reason_nothing_happens(reason: str) -> None:
    """A bad form."""
    make_kind()
    response = signed_in().post(URL, {"reason": reason}, headers=HTMX)
    assert response.status_code == 422
    assert "Give a reason for the pause." in response.content.decode()
    assert Kind.objects.get().paused_at is None
    assert not OperatorAction.objects.exists()


def test_paused_already_it_says_so_and_keeps_the_first_reason() -> None:
    """Somebody was first."""
    make_kind()
    lifecycle.pause_kind("ticket.triage", by="bea", reason="first")
    response = signed_in().post(URL, {"reason": "second"}, headers=HTMX)
    assert "ticket.triage was paused already." in response.content.decode()
    assert Kind.objects.get().pause_reason == "first"
    assert (OperatorAction.objects.get().count, OperatorAction.objects.get().outcome) == (0, "was paused already")


def test_an_unknown_kind_is_a_404() -> None:
    """Not a pause of nothing."""
    assert signed_in().post("/kinds/no.such/pause/", {"reason": "x"}).status_code == 404


def test_doors() -> None:
    """GET, the wrong people, a missing token."""
    make_kind()
    refuses_the_wrong_people(URL, reason="x")
    refuses_get(URL)
    refuses_a_missing_token(URL, reason="x")
    assert Kind.objects.get().paused_at is None
