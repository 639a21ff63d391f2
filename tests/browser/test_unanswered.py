"""The server leaves a question unanswered: the page goes on where it can, and says what it knows."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tasks import lifecycle
from tests.browser.test_focus import LIVE, RESUME, caught, hold, pause, resume, row
from tests.factories import make_task

pytestmark = pytest.mark.django_db(transaction=True)
ROWS, CANCEL, RELEASE = "**/tasks/rows/**", "**/tasks/cancel/", "**/release/"


def test_an_action_without_an_answer_stops_no_other_place(page: Page) -> None:
    """The rows stand outside the form that waits."""
    ticked, other = make_task(ago=60), make_task(ago=30)
    page.goto("/tasks/")
    actions = hold(page, CANCEL)
    page.locator(f"#tick-{ticked.pk}").check()
    page.locator("#bulk-reason").fill("not wanted")
    page.get_by_role("button", name="Cancel the ticked tasks").click()
    caught(page, actions)
    page.get_by_role("button", name="Untick").click()
    lifecycle.cancel([other.pk], actor="bea")
    expect(page.locator(f"#task-{other.pk}")).to_contain_text("cancelled")
    expect(page.locator("#live-mark")).to_have_text("live")
    page.unroute_all(behavior="ignoreErrors")


def test_the_place_of_an_action_without_an_answer_stands_still_and_says_so(kinds_page: Page) -> None:
    page = kinds_page
    actions = hold(page, RESUME)
    resume(page).press("Enter")
    action = caught(page, actions)
    lifecycle.pause_kind("invoice.check", by="bea", reason="x")
    expect(page.locator("#live-mark")).to_have_text("reconnecting")
    expect(row(page, "invoice.check")).not_to_contain_text("Paused by bea")
    expect(resume(page)).to_be_disabled()
    action.continue_()
    expect(page.locator("#live-mark")).to_have_text("live")
    expect(row(page, "invoice.check")).to_contain_text("Paused by bea")


@pytest.mark.parametrize("path", ["/kinds/", "/tasks/"])
def test_a_look_without_an_answer_is_marked(kinds_page: Page, path: str) -> None:
    page = kinds_page
    make_task()
    page.goto(path)
    looks = hold(page, LIVE if path == "/kinds/" else ROWS)
    caught(page, looks)
    expect(page.locator("#live-mark")).to_have_text("reconnecting")
    assert len(looks) == 1
    looks[0].continue_()
    page.unroute_all(behavior="ignoreErrors")
    expect(page.locator("#live-mark")).to_have_text("live")


def test_a_look_that_is_owed_is_asked_when_the_second_action_has_ended(kinds_page: Page) -> None:
    """The page's clock stands, so that no beat brings the look."""
    page = kinds_page
    lifecycle.hold_provider("acme", by="bea", reason="bad key", code="AI_AUTH_FAILED")
    page.clock.install(time=0)
    page.clock.pause_at(1_000)
    page.goto("/kinds/")
    actions = hold(page, RELEASE)
    page.locator("[id='provider-acme']").get_by_role("button", name="Release").press("Enter")
    second = caught(page, actions)
    resume(page).press("Enter")
    expect(page.locator("#toasts")).to_contain_text("ticket.triage runs again.")
    # A look that is asked before the second has ended has its answer by now; it must not count.
    page.clock.run_for(100)
    page.evaluate("() => fetch('/kinds/live/').then((answer) => answer.text())")
    expect(resume(page)).to_be_visible()
    second.fulfill(status=503)
    expect(pause(page)).to_be_visible()
    expect(page.locator("[id='provider-acme']").get_by_role("button", name="Release")).to_be_enabled()
