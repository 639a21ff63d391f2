"""The focus stays where a person left it, whatever is swapped, how often, and in whichever order the answers come."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tasks import lifecycle
from tasks.models import Kind
from tests.factories import make_task

pytestmark = pytest.mark.django_db(transaction=True)
LIVE, RESUME, PAUSE = "**/kinds/live/", "**/resume/", "**/pause/"


def row(page: Page, kind: str = "ticket.triage") -> Locator:
    return page.locator(f"[id='kind-{kind}']")


def pause(page: Page, kind: str = "ticket.triage") -> Locator:
    return row(page, kind).locator("summary", has_text="Pause…")


def resume(page: Page) -> Locator:
    return row(page).get_by_role("button", name="Resume")


def ask_to_pause(page: Page, reason: str) -> Locator:
    """Open the question for invoice.check by the keyboard and write ``reason``; the button that answers it."""
    pause(page, "invoice.check").press("Enter")
    expect(row(page, "invoice.check").get_by_label("Reason")).to_be_focused()
    page.keyboard.type(reason)
    return row(page, "invoice.check").get_by_role("button", name="Pause", exact=True)


def hold(page: Page, url: str) -> list[Route]:
    """Requests for ``url`` wait in the list until the test lets them go."""
    held: list[Route] = []
    page.route(url, lambda route: held.append(route))
    return held


def caught(page: Page, held: list[Route]) -> Route:
    """The one that waits; the page's events are served meanwhile."""
    for _ in range(500):
        if held:
            return held[0]
        page.wait_for_timeout(20)
    pytest.fail("nothing was asked")


def drawn(page: Page) -> None:
    """Wait until what has arrived is swapped in, and drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def swapped(page: Page) -> None:
    """Wait for a whole turn of the page's refresh: asked, answered, swapped."""
    with page.expect_response(LIVE) as answer:
        pass
    answer.value.finished()
    drawn(page)


@pytest.mark.parametrize("first", ["the refresh", "the action"])
def test_a_refresh_that_was_under_way_when_the_button_was_pressed(kinds_page: Page, first: str) -> None:
    """Its answer still has the button: it must neither take the focus nor keep the page from catching up."""
    page = kinds_page
    refreshes, actions = hold(page, LIVE), hold(page, RESUME)
    resume(page).focus()
    refresh = caught(page, refreshes)
    before = refresh.fetch()
    page.keyboard.press("Enter")
    action = caught(page, actions)
    page.unroute(LIVE)
    if first == "the refresh":
        with page.expect_event("requestfinished", lambda request: request.url.endswith("/kinds/live/")):
            refresh.fulfill(response=before)
        drawn(page)
        action.continue_()
    else:
        action.continue_()
        expect(page.locator("#toasts")).to_contain_text("ticket.triage runs again.")
        refresh.fulfill(response=before)
    expect(pause(page)).to_be_focused()
    swapped(page)
    expect(pause(page)).to_be_focused()
    assert Kind.objects.get(pk="ticket.triage").paused_at is None


def test_somebody_else_was_first(kinds_page: Page) -> None:
    """No action of this person at all: what had the focus is gone, and what stands there now has it. Twice."""
    page = kinds_page
    resume(page).focus()
    lifecycle.resume_kind("ticket.triage", by="bea")
    expect(pause(page)).to_be_focused()
    lifecycle.pause_kind("ticket.triage", by="bea", reason="again")
    expect(resume(page)).to_be_focused()


def test_a_row_that_leaves_gives_the_focus_to_the_next(kinds_page: Page) -> None:
    page = kinds_page
    title = row(page, "invoice.check").locator(".title")
    title.focus()
    Kind.objects.get(pk="invoice.check").delete()
    expect(title).to_have_count(0)
    expect(row(page).locator(".title")).to_be_focused()


def test_a_task_that_leaves_gives_the_focus_to_its_neighbour(page: Page) -> None:
    older, newer = make_task(ago=60), make_task(ago=30)
    page.goto("/tasks/")
    page.locator(f"#task-{older.pk} .title").focus()
    older.delete()
    expect(page.locator(f"#task-{older.pk}")).to_have_count(0)
    expect(page.locator(f"#task-{newer.pk} .title")).to_be_focused()


@pytest.mark.parametrize("failure", ["refused", "unreachable"])
def test_an_action_that_failed_gives_its_button_back(kinds_page: Page, failure: str, complaints: list[str]) -> None:
    page = kinds_page
    page.route(RESUME, lambda route: route.fulfill(status=503) if failure == "refused" else route.abort())
    resume(page).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#toasts .error")).to_be_visible()
    expect(resume(page)).to_be_focused()
    page.unroute(RESUME)
    page.keyboard.press("Enter")
    expect(pause(page)).to_be_focused()
    complaints[:] = [complaint for complaint in complaints if "Failed to fetch" not in complaint]


def test_an_action_that_went_through_gives_its_button_back_until_the_page_catches_up(kinds_page: Page) -> None:
    """The refresh that shows what came of it may be long in coming."""
    page = kinds_page
    refreshes = hold(page, LIVE)
    resume(page).press("Enter")
    expect(page.locator("#toasts")).to_contain_text("ticket.triage runs again.")
    caught(page, refreshes)
    expect(resume(page)).to_be_focused()
    refreshes[-1].continue_()
    page.unroute(LIVE)
    expect(pause(page)).to_be_focused()


def test_a_form_that_is_wrong_keeps_the_focus(kinds_page: Page) -> None:
    """The sheet stays open, no refresh comes to its help."""
    page = kinds_page
    button = ask_to_pause(page, " ")
    button.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("Give a reason for the pause.")
    expect(button).to_be_focused()


@pytest.mark.parametrize("verb", ["resume", "pause"])
def test_a_person_who_went_elsewhere_is_left_alone(kinds_page: Page, verb: str) -> None:
    """While the server was asked, and when it has answered."""
    page = kinds_page
    actions = hold(page, f"**/{verb}/")
    button = resume(page) if verb == "resume" else ask_to_pause(page, "wrong language")
    button.press("Enter")
    action = caught(page, actions)
    goal = page.locator("[id='provider-acme'] .title")
    goal.focus()
    action.continue_()
    expect(page.locator("#toasts .toast")).to_have_count(1)
    swapped(page)
    expect(goal).to_be_focused()


def test_an_answer_closes_no_sheet_but_its_own(kinds_page: Page) -> None:
    page = kinds_page
    actions = hold(page, RESUME)
    resume(page).press("Enter")
    action = caught(page, actions)
    ask_to_pause(page, "half a sen")
    action.continue_()
    expect(page.locator("#toasts")).to_contain_text("ticket.triage runs again.")
    reason = row(page, "invoice.check").get_by_label("Reason")
    expect(reason).to_be_focused()
    expect(reason).to_have_value("half a sen")
    page.keyboard.press("Escape")
    expect(pause(page, "invoice.check")).to_be_focused()
    expect(pause(page)).to_be_visible()


@pytest.mark.parametrize("way", ["Cancel the ticked tasks", "Untick"])
def test_when_the_bar_goes_the_focus_is_where_the_ticking_began(page: Page, way: str) -> None:
    tasks = [make_task(ago=ago) for ago in (30, 60, 90)]
    page.goto("/tasks/")
    ticks = [page.locator(f"#tick-{task.pk}") for task in tasks]
    for tick in ticks[1:]:
        tick.press("Space")
    page.locator("#bulk-reason").fill("not wanted")
    page.get_by_role("button", name=way).press("Enter")
    expect(page.locator("#bulk")).not_to_be_visible()
    expect(ticks[1]).to_be_focused()


def test_when_the_bar_goes_who_had_left_it_is_left_alone(page: Page) -> None:
    """A click beside everything, while the server was asked."""
    task = make_task()
    page.goto("/tasks/")
    actions = hold(page, "**/tasks/cancel/")
    page.locator(f"#tick-{task.pk}").check()
    page.locator("#bulk-reason").fill("not wanted")
    page.get_by_role("button", name="Cancel the ticked tasks").click()
    action = caught(page, actions)
    page.locator(".rail").click(position={"x": 5, "y": 700})
    nowhere = "() => document.activeElement === document.body"
    assert page.evaluate(nowhere)
    action.continue_()
    expect(page.locator("#bulk")).not_to_be_visible()
    assert page.evaluate(nowhere)


def test_a_message_that_is_dismissed_leaves_the_focus_in_the_page(kinds_page: Page) -> None:
    page = kinds_page
    resume(page).press("Enter")
    page.get_by_role("button", name="Dismiss").press("Enter")
    expect(page.locator("#toasts .toast")).to_have_count(0)
    expect(page.locator("#main")).to_be_focused()
