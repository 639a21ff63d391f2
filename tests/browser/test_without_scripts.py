"""Every verb and every page with JavaScript off."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from deadletters.models import DeadLetter
from tasks.models import OperatorAction, OperatorProfile, Task
from tests.browser.pages import fill
from tests.deadletters import deaths
from tests.factories import make_kind, make_task

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def plain(open_page: Callable[..., Page], operator: User) -> Page:
    """A page of the operator's without scripts."""
    return open_page(as_=operator.username, java_script_enabled=False)


def said(page: Page, sentence: str) -> None:
    """The message on the page that a verb led to."""
    expect(page.locator("#toasts")).to_contain_text(sentence)


def test_every_page_can_be_read(plain: Page, operator: User) -> None:
    for path in fill(operator):
        response = plain.goto(path)
        assert response is not None
        assert (path, response.status) == (path, 404 if path == "/nothing/here/" else 200)
        expect(plain.locator("h1")).to_have_count(1)


def test_ticked_tasks_are_cancelled(plain: Page) -> None:
    tasks = [make_task() for _ in range(3)]
    plain.goto("/tasks/")
    plain.locator("input.tick").nth(0).check()
    plain.locator("input.tick").nth(1).check()
    plain.get_by_placeholder("Reason, kept in the audit").fill("test data")
    plain.get_by_role("button", name="Cancel the ticked tasks").click()
    said(plain, "2 tasks are cancelled.")
    assert Task.objects.filter(status="cancelled").count() == 2
    assert Task.objects.get(status="ready") in tasks


def test_a_provider_is_held_and_released(plain: Page) -> None:
    make_kind()
    plain.goto("/kinds/")
    plain.get_by_text("Hold…").click()
    plain.locator("details.ask[open] textarea").fill("the bill is not paid")
    plain.get_by_role("button", name="Hold", exact=True).click()
    said(plain, "acme is on hold")
    expect(plain.locator("#kinds-live")).to_contain_text("the bill is not paid")
    plain.get_by_role("button", name="Release").click()
    said(plain, "acme is released")


def test_one_letter_is_reprocessed(plain: Page) -> None:
    letter = deaths.letter()
    plain.goto(f"/dead-letters/{letter.pk}/")
    plain.locator("summary", has_text="Reprocess: 3 attempts, cycle 2").click()
    plain.get_by_role("button", name="Reprocess: 3 attempts, cycle 2").click()
    said(plain, "1 letter is sent again.")
    letter.refresh_from_db()
    assert letter.state == "reprocessed"


def test_ticked_letters_are_discarded_and_restored(plain: Page) -> None:
    for _ in range(2):
        deaths.letter()
    plain.goto("/dead-letters/")
    for at in range(2):
        plain.locator("input.tick").nth(at).check()
    plain.get_by_placeholder("Reason (a discard needs one)").fill("old tickets")
    plain.get_by_role("button", name="Discard").click()
    said(plain, "2 letters are discarded.")
    plain.goto("/dead-letters/?state=discarded")
    for at in range(2):
        plain.locator("input.tick").nth(at).check()
    plain.get_by_role("button", name="Restore").click()
    said(plain, "2 letters are open again.")
    assert DeadLetter.objects.open().count() == 2


def test_the_profile_is_saved_and_the_way_out_found(plain: Page, operator: User) -> None:
    plain.get_by_role("link", name=operator.username).click()
    plain.get_by_label("Theme").select_option("dark")
    plain.get_by_role("button", name="Save").click()
    said(plain, "Saved.")
    assert OperatorProfile.objects.get(user=operator).theme == "dark"
    expect(plain.locator("html")).to_have_attribute("data-theme", "dark")
    plain.set_viewport_size({"width": 390, "height": 800})
    plain.get_by_role("link", name="Profile").click()
    plain.get_by_role("button", name="Sign out").click()
    expect(plain.get_by_label("Password")).to_be_visible()
    assert OperatorAction.objects.filter(action="signed_out").count() == 1
