"""Restore: of one letter, and of the ticked ones."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tasks.models import OperatorAction
from tests.deadletters import deaths, people, verb_cases
from tests.deadletters.verb_cases import messages, signed_in

pytestmark = pytest.mark.django_db
ONE, MANY = "restore-letter", "restore-letters"


def test_works_and_says_so() -> None:
    letter = deaths.letter(state="discarded")
    client = signed_in(people.operator("bo"))
    response = client.post(reverse(ONE, args=[letter.id]))
    assert messages(client, response["Location"]) == "1 letter is open again."
    letter.refresh_from_db()
    assert (letter.state, letter.discard_reason) == ("open", "")
    row = OperatorAction.objects.first()
    assert (row.username, row.action, row.outcome) == ("bo", "restore_letter", "open")


def test_an_open_letter_is_open_already() -> None:
    letter = deaths.letter()
    client = signed_in()
    response = client.post(reverse(ONE, args=[letter.id]))
    assert messages(client, response["Location"]) == "Nothing was done. It is open already."


@pytest.mark.parametrize(
    "case",
    [verb_cases.refuses_get, verb_cases.refuses_viewers, verb_cases.refuses_strangers, verb_cases.refuses_forged_forms],
)
def test_the_door(case) -> None:  # type: ignore[no-untyped-def]
    letter = deaths.letter(state="discarded")
    case(ONE, letter.id)
    case(MANY)
    letter.refresh_from_db()
    assert letter.state == "discarded"


def test_an_unknown_letter() -> None:
    verb_cases.unknown_is_404(ONE)


def test_the_ticked_ones() -> None:
    letters = [deaths.letter(state="discarded") for _ in range(2)]
    client = signed_in()
    response = client.post(reverse(MANY), {"id": [str(letter.id) for letter in letters]})
    assert messages(client, response["Location"]) == "2 letters are open again."
