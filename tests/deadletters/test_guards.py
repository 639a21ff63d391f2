"""What the database itself refuses: a changed row of a letter's history."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from deadletters.models import DeadLetter, LetterEvent
from tasks.states import Status
from tests.factories import make_task
from tests.tasks.test_guards import forgeries

pytestmark = pytest.mark.django_db


def test_no_column_of_a_letter_s_history_is_changed() -> None:
    make_task(Status.DEAD)
    event = LetterEvent.objects.get()
    taken = forgeries(event)
    assert {"letter_id", "at", "from_state", "to_state", "actor", "reason"} == taken.keys()
    assert not any(taken.values())


def test_an_event_is_not_moved_to_another_letter() -> None:
    make_task(Status.DEAD)
    make_task(Status.DEAD)
    first, second = DeadLetter.objects.order_by("pk")
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        LetterEvent.objects.filter(letter=first).update(letter=second, actor="forged")
