"""Resume a kind."""

from __future__ import annotations

import pytest

from tasks import lifecycle
from tasks.models import Kind, OperatorAction
from tests.factories import make_kind
from tests.tasks.views.doors import HTMX, refuses_a_missing_token, refuses_get, refuses_the_wrong_people, signed_in

pytestmark = pytest.mark.django_db
URL = "/kinds/ticket.triage/resume/"


@pytest.fixture
def paused() -> Kind:
    """A paused kind."""
    kind = make_kind()
    lifecycle.pause_kind(kind.pk, by="bea", reason="wrong language")
    return kind


def test_it_resumes(paused: Kind) -> None:
    """The pause is gone from the row and the page; the audit has it."""
    response = signed_in().post(URL, follow=True)
    paused.refresh_from_db()
    assert (paused.paused_at, paused.paused_by, paused.pause_reason) == (None, "", "")
    page = response.content.decode()
    assert "ticket.triage runs again." in page and "Paused by" not in page
    row = OperatorAction.objects.get()
    assert (row.action, row.target_id, row.count, row.outcome) == ("resume_kind", "ticket.triage", 1, "done")


def test_not_paused_it_says_so() -> None:
    """Somebody was first."""
    make_kind()
    response = signed_in().post(URL, headers=HTMX)
    assert "ticket.triage was not paused." in response.content.decode()
    assert (OperatorAction.objects.get().count, OperatorAction.objects.get().outcome) == (0, "was not paused")


def test_an_unknown_kind_is_a_404() -> None:
    """Not a resume of nothing."""
    assert signed_in().post("/kinds/no.such/resume/").status_code == 404


def test_doors(paused: Kind) -> None:
    """GET, the wrong people, a missing token."""
    refuses_the_wrong_people(URL)
    refuses_get(URL)
    refuses_a_missing_token(URL)
    paused.refresh_from_db()
    assert paused.paused_at is not None
