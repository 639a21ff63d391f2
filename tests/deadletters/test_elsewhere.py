"""Letters on other pages: on the task's, and in the rail."""

from __future__ import annotations

import re

import pytest

from deadletters.templatetags.letters import open_letter_count, task_letters
from tests.deadletters import deaths
from tests.deadletters.verb_cases import signed_in

pytestmark = pytest.mark.django_db


def test_a_task_page_shows_its_letters_newest_cycle_first() -> None:
    letter = deaths.letter(state="died_again")
    later = deaths.letter_of(letter.task_id, cycle=2)
    assert task_letters(letter.task)["letters"] == [later, letter]
    page = signed_in().get(f"/tasks/{letter.task_id}/").content.decode()
    assert page.index(f"/dead-letters/{later.id}/") < page.index(f"/dead-letters/{letter.id}/")
    assert "died again" in page


def test_a_task_without_letters_shows_none() -> None:
    task = deaths.submit()
    assert 'id="letters"' not in signed_in().get(f"/tasks/{task.id}/").content.decode()


def test_the_rail_counts_the_open_letters() -> None:
    deaths.letter()
    deaths.letter()
    deaths.letter(state="discarded")
    page = signed_in().get("/tasks/").content.decode()
    assert re.search(r'<span class="count hot">2</span>', page)


def test_the_count_in_the_rail_ends_at_its_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deadletters.templatetags.letters.ALIKE_CAP", 1)
    for _ in range(3):
        deaths.letter()
    assert open_letter_count() == 2
    assert ">1+</span>" in signed_in().get("/tasks/").content.decode()


def test_no_open_letter_no_number() -> None:
    assert 'class="count hot"' not in signed_in().get("/tasks/").content.decode()
