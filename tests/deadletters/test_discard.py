"""Discard: of one letter, and of the ticked ones."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tasks.models import OperatorAction
from tests.deadletters import deaths, verb_cases
from tests.deadletters.verb_cases import messages, signed_in

pytestmark = pytest.mark.django_db
ONE, MANY = "discard-letter", "discard-letters"


def test_works_and_says_so() -> None:
    letter = deaths.letter()
    client = signed_in()
    response = client.post(reverse(ONE, args=[letter.id]), {"reason": "a duplicate"})
    assert messages(client, response["Location"]) == "1 letter is discarded."
    letter.refresh_from_db()
    assert (letter.state, letter.discard_reason) == ("discarded", "a duplicate")
    assert deaths.status_of(letter.task_id) == "dead"
    row = OperatorAction.objects.first()
    assert (row.action, row.reason, row.outcome) == ("discard_letter", "a duplicate", "discarded")


def test_asks_for_a_reason() -> None:
    letter = deaths.letter()
    client = signed_in()
    response = client.post(reverse(ONE, args=[letter.id]), {"reason": "  "})
    assert messages(client, response["Location"]) == "Say why: a discarded letter keeps its reason."
    letter.refresh_from_db()
    assert letter.state == "open"


def test_to_htmx_a_missing_reason_is_a_bad_form_that_keeps_the_sheet_open() -> None:
    letter = deaths.letter()
    response = signed_in().post(reverse(ONE, args=[letter.id]), headers={"HX-Request": "true"})
    assert response.status_code == 422
    assert "HX-Trigger" not in response


def test_twice_is_told() -> None:
    letter = deaths.letter(state="discarded")
    client = signed_in()
    response = client.post(reverse(ONE, args=[letter.id]), {"reason": "again"})
    said = messages(client, response["Location"])
    assert said.startswith("Nothing was done. ana discarded it at ")
    letter.refresh_from_db()
    assert letter.discard_reason == "a test ticket"


@pytest.mark.parametrize(
    "case",
    [verb_cases.refuses_get, verb_cases.refuses_viewers, verb_cases.refuses_strangers, verb_cases.refuses_forged_forms],
)
def test_the_door(case) -> None:  # type: ignore[no-untyped-def]
    letter = deaths.letter()
    case(ONE, letter.id)
    case(MANY)
    letter.refresh_from_db()
    assert letter.state == "open"


def test_an_unknown_letter() -> None:
    verb_cases.unknown_is_404(ONE)


def test_the_ticked_ones_share_the_reason() -> None:
    letters = [deaths.letter() for _ in range(2)]
    client = signed_in()
    response = client.post(reverse(MANY), {"id": [str(letter.id) for letter in letters], "reason": "old tickets"})
    assert messages(client, response["Location"]) == "2 letters are discarded."
    for letter in letters:
        letter.refresh_from_db()
        assert (letter.state, letter.discard_reason) == ("discarded", "old tickets")


def test_the_ticked_ones_need_a_reason_too() -> None:
    letter = deaths.letter()
    client = signed_in()
    response = client.post(reverse(MANY), {"id": [str(letter.id)]})
    assert messages(client, response["Location"]) == "Say why: a discarded letter keeps its reason."
    letter.refresh_from_db()
    assert letter.state == "open"
