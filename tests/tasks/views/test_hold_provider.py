"""Put a provider on hold."""

from __future__ import annotations

import pytest

from tasks import lifecycle
from tasks.models import OperatorAction, Provider
from tests.factories import make_provider
from tests.tasks.views.doors import HTMX, refuses_a_missing_token, refuses_get, refuses_the_wrong_people, signed_in

pytestmark = pytest.mark.django_db
URL = "/providers/acme/hold/"


def test_it_holds_with_a_reason() -> None:
    """Shown on the page with who and why, and in the audit."""
    make_provider()
    response = signed_in().post(URL, {"reason": "invoice unpaid"}, follow=True)
    provider = Provider.objects.get()
    assert provider.held_at is not None and (provider.held_by, provider.hold_reason) == ("ana", "invoice unpaid")
    page = response.content.decode()
    assert "acme is on hold: no call starts, what runs goes on." in page
    assert "Put on hold by ana" in page and "invoice unpaid" in page
    row = OperatorAction.objects.get()
    assert (row.action, row.target_type, row.target_id) == ("hold_provider", "provider", "acme")
    assert (row.reason, row.count, row.outcome) == ("invoice unpaid", 1, "done")


def test_without_a_reason_nothing_happens() -> None:
    """A bad form."""
    make_provider()
    response = signed_in().post(URL, headers=HTMX)
    assert (response.status_code, Provider.objects.get().held_at) == (422, None)
    assert "Give a reason for the hold." in response.content.decode()
    assert not OperatorAction.objects.exists()


def test_on_hold_already_it_says_so_and_keeps_the_first_reason() -> None:
    """The system was first."""
    make_provider()
    lifecycle.hold_provider("acme", by="redrive", reason="bad key", code="AI_AUTH_FAILED")
    response = signed_in().post(URL, {"reason": "second"}, headers=HTMX)
    assert "acme was on hold already." in response.content.decode()
    assert Provider.objects.get().hold_reason == "bad key"
    assert OperatorAction.objects.get().outcome == "was on hold already"


def test_an_unknown_provider_is_a_404() -> None:
    """Not a hold of nothing."""
    assert signed_in().post("/providers/no-such/hold/", {"reason": "x"}).status_code == 404


def test_doors() -> None:
    """GET, the wrong people, a missing token."""
    make_provider()
    refuses_the_wrong_people(URL, reason="x")
    refuses_get(URL)
    refuses_a_missing_token(URL, reason="x")
    assert Provider.objects.get().held_at is None
