"""What the caretaker clears away."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tasks import tally
from tasks.engine.caretaker import Caretaker
from tasks.models import LimitCharge, LimitPlace, Tally, TallyDelta
from tests.deadletters import deaths

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_round_folds_the_counts_and_forgets_old_charges_and_places() -> None:
    deaths.submit()
    LimitPlace.objects.create(provider="acme", attempt_id=1)
    for minutes in (1, 6):
        LimitCharge.objects.create(
            provider="acme", requests=1, tokens=0, at=timezone.now() - timedelta(minutes=minutes)
        )
    Caretaker("test")._round()
    assert not TallyDelta.objects.exists()
    assert Tally.objects.get(metric="tasks").value == 1
    assert tally.read(["tasks"]) == [("tasks", "ticket.triage", "ready", 1.0)]
    assert LimitCharge.objects.count() == 1
    assert not LimitPlace.objects.exists(), "its attempt does not run"
