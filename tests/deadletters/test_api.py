"""GET /api/v1/dead-letters, POST /api/v1/dead-letters/{id}/reprocess."""

from __future__ import annotations

from uuid import uuid4

import pytest

from deadletters.models import DeadLetter, LetterEvent
from tasks.models import OperatorAction, Task
from tasks.states import Status
from tests.deadletters import deaths
from tests.tasks.api.keys import caller

pytestmark = pytest.mark.django_db


def test_open_letters_newest_first() -> None:
    old, new = deaths.letter(session_id="s-1"), deaths.letter()
    deaths.letter(state="discarded")
    body = caller("operate").get("/dead-letters").json()
    assert [letter["id"] for letter in body["letters"]] == [str(new.pk), str(old.pk)]
    assert body["next"] is None
    letter = body["letters"][1]
    assert (letter["task"], letter["session_id"], letter["state"]) == (str(old.task_id), "s-1", "open")
    assert (letter["reason"], letter["error_code"]) == ("not_retryable", "AI_PROVIDER_ERROR")
    assert "last_error" not in letter and "failure" not in letter


def test_the_consoles_filters() -> None:
    deaths.letter()
    closed = deaths.letter(state="discarded")
    program = caller("operate")
    assert [one["id"] for one in program.get("/dead-letters?state=discarded").json()["letters"]] == [str(closed.pk)]
    assert program.get("/dead-letters?code=AI_NOTHING").json()["letters"] == []


@pytest.mark.parametrize(("query", "field"), [("since=soon", "since"), ("stat=open", "stat"), ("state=odd", "state")])
def test_a_filter_that_is_not_understood(query: str, field: str) -> None:
    """Never a wider answer than was asked for."""
    deaths.letter()
    response = caller("operate").get(f"/dead-letters?{query}")
    assert response.status_code == 422
    assert [fault["field"] for fault in response.json()["errors"]] == [field]


def test_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = [deaths.letter() for _number in range(3)]
    monkeypatch.setattr("deadletters.api.PAGE", 2)
    program = caller("operate")
    first = program.get("/dead-letters?state=open").json()
    assert len(first["letters"]) == 2
    second = program.get(first["next"].removeprefix("/api/v1")).json()
    assert [one["id"] for one in second["letters"]] == [str(letters[0].pk)] and second["next"] is None


def test_reprocess() -> None:
    letter = deaths.letter()
    response = caller("operate").post(f"/dead-letters/{letter.pk}/reprocess", {"reason": "mended"})
    assert response.status_code == 202
    assert (response.json()["state"], response.json()["task"]) == ("reprocessed", str(letter.task_id))
    task = Task.objects.get(pk=letter.task_id)
    assert (task.status, task.cycle) == (Status.READY, 2)
    assert LetterEvent.objects.filter(letter=letter).latest("id").actor == "key shop"
    action = OperatorAction.objects.get(action="reprocess_letter")
    assert (action.username, action.user, action.reason) == ("key shop", None, "mended")


def test_reprocess_without_a_body() -> None:
    letter = deaths.letter()
    assert caller("operate").post(f"/dead-letters/{letter.pk}/reprocess").status_code == 202


@pytest.mark.parametrize("state", ["reprocessed", "recovered", "died_again", "discarded"])
def test_a_letter_that_is_not_open(state: str) -> None:
    letter = deaths.letter(state=state)
    response = caller("operate").post(f"/dead-letters/{letter.pk}/reprocess")
    assert response.status_code == 409 and response.json()["detail"]
    assert DeadLetter.objects.get(pk=letter.pk).state == state


def test_an_unknown_letter() -> None:
    response = caller("operate").post(f"/dead-letters/{uuid4()}/reprocess")
    assert (response.status_code, response.json()["detail"]) == (404, "There is no such letter.")


def test_an_unknown_member_is_refused() -> None:
    letter = deaths.letter()
    assert caller("operate").post(f"/dead-letters/{letter.pk}/reprocess", {"raeson": "x"}).status_code == 422
    assert DeadLetter.objects.get(pk=letter.pk).state == "open"
