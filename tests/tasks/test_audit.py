"""Audit rows."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from tasks import audit
from tasks.models import OperatorAction
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def test_a_row_holds_all_that_was_said() -> None:
    """Who, what, on what, why, how many, the exact filter, what came of it."""
    user = make_user()
    audit.record(user, "replay", target_type="kind", target_id="a.b", reason=" why ", count=3, filter={"q": "x"})
    row = OperatorAction.objects.get()
    assert (row.user, row.username, row.action, row.target_type, row.target_id) == (
        user,
        "ana",
        "replay",
        "kind",
        "a.b",
    )
    assert (row.reason, row.count, row.filter, row.outcome, row.data) == ("why", 3, {"q": "x"}, "done", {})


def test_long_values_are_cut_with_a_mark() -> None:
    """An action is never lost because its outcome is long."""
    row = audit.record(make_user(), "x", outcome="y" * 300, target_id="z" * 300)
    assert (len(row.outcome), row.outcome[-1], len(row.target_id)) == (200, "…", 200)


def test_the_name_stays_when_the_user_goes() -> None:
    """The row says who it was."""
    user = make_user()
    audit.record(user, "x")
    user.delete()
    row = OperatorAction.objects.get()
    assert (row.user, row.username) == (None, "ana")


def test_a_row_is_never_changed() -> None:
    """The database refuses it."""
    row = audit.record(make_user(), "x")
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        OperatorAction.objects.filter(pk=row.pk).update(reason="other")
