"""Reprocess: of one letter, and of the ticked ones."""

from __future__ import annotations

import pytest
from django.urls import reverse

from deadletters import triage
from tasks.models import OperatorAction, Task
from tests.deadletters import deaths, people, verb_cases
from tests.deadletters.verb_cases import messages, signed_in

pytestmark = pytest.mark.django_db
ONE, MANY = "reprocess-letter", "reprocess-letters"


def test_works_and_says_so() -> None:
    letter = deaths.letter()
    client = signed_in()
    response = client.post(reverse(ONE, args=[letter.id]), {"reason": "the key is new"})

    assert (response.status_code, response["Location"]) == (303, f"/dead-letters/{letter.id}/")
    assert messages(client, response["Location"]) == "1 letter is sent again."
    letter.refresh_from_db()
    assert letter.state == "reprocessed"
    task = Task.objects.get(pk=letter.task_id)
    assert (task.status, task.cycle) == ("ready", 2)


def test_leaves_an_audit_row() -> None:
    letter = deaths.letter()
    signed_in().post(reverse(ONE, args=[letter.id]), {"reason": "the key is new"})
    row = OperatorAction.objects.first()
    assert (row.username, row.action, row.target_type) == ("ana", "reprocess_letter", "letter")
    assert (row.target_id, row.reason, row.count, row.outcome) == (str(letter.id), "the key is new", 1, "reprocessed")


def test_needs_no_reason() -> None:
    letter = deaths.letter()
    assert signed_in().post(reverse(ONE, args=[letter.id])).status_code == 303
    letter.refresh_from_db()
    assert letter.state == "reprocessed"


def test_who_comes_second_reads_who_was_first() -> None:
    letter = deaths.letter()
    triage.reprocess([letter.id], user=people.operator("bo"))
    client = signed_in()
    response = client.post(reverse(ONE, args=[letter.id]))
    assert messages(client, response["Location"]).startswith("Nothing was done. bo sent it again at ")
    assert Task.objects.get(pk=letter.task_id).cycle == 2


def test_answers_htmx_with_a_message_and_the_event_that_refreshes() -> None:
    letter = deaths.letter()
    response = signed_in().post(reverse(ONE, args=[letter.id]), headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert "1 letter is sent again." in response.content.decode()
    assert response["HX-Trigger"] == '{"acted": {}}'


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


def test_the_ticked_ones_and_no_others() -> None:
    letters = [deaths.letter() for _ in range(3)]
    client = signed_in()
    response = client.post(
        reverse(MANY), {"id": [str(letters[0].id), str(letters[2].id)], "next": "/dead-letters/?kind=ticket.triage"}
    )
    assert response["Location"] == "/dead-letters/?kind=ticket.triage"
    assert messages(client, response["Location"]) == "2 letters are sent again."
    states = []
    for letter in letters:
        letter.refresh_from_db()
        states.append(letter.state)
    assert states == ["reprocessed", "open", "reprocessed"]


def test_of_the_ticked_ones_those_left_are_counted_with_the_reason() -> None:
    letters = [deaths.letter(), deaths.letter(), deaths.letter(state="discarded"), deaths.letter(state="recovered")]
    client = signed_in()
    response = client.post(reverse(MANY), {"id": [str(letter.id) for letter in letters]})
    said = messages(client, response["Location"])
    assert said.startswith("2 letters are sent again. 2 were left as they were: 1 × ana discarded it at ")
    assert "1 × It was sent again and succeeded; there is nothing left to do." in said


@pytest.mark.parametrize("ids", [[], ["nonsense"]])
def test_nothing_ticked(ids: list[str]) -> None:
    client = signed_in()
    response = client.post(reverse(MANY), {"id": ids})
    assert messages(client, response["Location"]) == "Tick the letters first."
    assert not OperatorAction.objects.exists()
