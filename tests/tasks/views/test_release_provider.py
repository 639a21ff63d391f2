"""Release a provider."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tasks import lifecycle
from tasks.models import OperatorAction, Provider
from tests.factories import make_provider
from tests.tasks.views.doors import HTMX, refuses_a_missing_token, refuses_get, refuses_the_wrong_people, signed_in

pytestmark = pytest.mark.django_db
URL = "/providers/acme/release/"


@pytest.fixture
def held() -> Provider:
    """A provider that the system put on hold."""
    provider = make_provider()
    lifecycle.hold_provider(provider.pk, by="redrive", reason="bad key", code="AI_AUTH_FAILED")
    return provider


def test_it_releases(held: Provider) -> None:
    """The hold is gone from the row and the page; the audit has it."""
    response = signed_in().post(URL, follow=True)
    held.refresh_from_db()
    assert (held.held_at, held.hold_reason, held.hold_code) == (None, "", "")
    page = response.content.decode()
    assert "acme is released: its tasks start again." in page and "Put on hold by" not in page
    row = OperatorAction.objects.get()
    assert (row.action, row.target_id, row.count, row.outcome) == ("release_provider", "acme", 1, "done")


def test_it_ends_the_cooling_too() -> None:
    """A person knows better than the Retry-After."""
    make_provider(cooling_until=timezone.now() + timedelta(minutes=5), cooling_reason="AI_RATE_LIMITED")
    signed_in().post(URL)
    assert Provider.objects.get().cooling_until is None


def test_neither_on_hold_nor_cooling_it_says_so() -> None:
    """Somebody was first."""
    make_provider()
    response = signed_in().post(URL, headers=HTMX)
    assert "acme was neither on hold nor cooling." in response.content.decode()
    assert (OperatorAction.objects.get().count, OperatorAction.objects.get().outcome) == (0, "was not stopped")


def test_an_unknown_provider_is_a_404() -> None:
    """Not a release of nothing."""
    assert signed_in().post("/providers/no-such/release/").status_code == 404


def test_doors(held: Provider) -> None:
    """GET, the wrong people, a missing token."""
    refuses_the_wrong_people(URL)
    refuses_get(URL)
    refuses_a_missing_token(URL)
    held.refresh_from_db()
    assert held.held_at is not None
