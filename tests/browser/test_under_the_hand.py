"""What refreshes by itself leaves alone what a person has under the hand."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tasks import lifecycle
from tasks.models import Task
from tasks.states import Status
from tests.deadletters import deaths
from tests.factories import make_kind, make_task

pytestmark = pytest.mark.django_db(transaction=True)


def place(one: Locator) -> dict[str, float]:
    """Where it stands."""
    box = one.bounding_box()
    assert box is not None
    return {"x": box["x"], "y": box["y"]}


def test_what_is_new_moves_no_row(page: Page) -> None:
    task = make_task(ago=60)
    page.goto("/tasks/")
    row = page.locator(f"#task-{task.pk}")
    before = place(row)
    make_task(ago=0)
    expect(page.get_by_role("link", name="1 new")).to_be_visible()
    assert place(row) == before


def test_ticking_a_row_moves_nothing_but_the_bar(page: Page) -> None:
    """The live mark changes its word, a bar comes; heading and rows stay."""
    page.set_viewport_size({"width": 390, "height": 800})
    task = make_task()
    page.goto("/tasks/")
    row, heading = page.locator(f"#task-{task.pk}"), page.locator("h1")
    before = (place(row), place(heading))
    page.locator(f"#tick-{task.pk}").check()
    expect(page.locator("#live-mark")).to_have_text("paused for you")
    expect(page.locator("#bulk")).to_be_visible()
    assert (place(row), place(heading)) == before


def test_an_open_sheet_and_its_text_stay(page: Page) -> None:
    """Nothing is asked while it is open; closed, the page catches up."""
    make_kind()
    page.goto("/kinds/")
    page.locator("summary", has_text="Pause…").click()
    reason = page.get_by_label("Reason").first
    reason.fill("half a sen")
    lifecycle.hold_provider("acme", by="bea", reason="x")
    page.wait_for_timeout(4_500)  # two beats and more: the point is that nothing happens
    expect(reason).to_have_value("half a sen")
    expect(page.locator("#kinds-live")).not_to_contain_text("Put on hold by bea")
    page.keyboard.press("Escape")
    expect(page.locator("#kinds-live")).to_contain_text("Put on hold by bea")


def test_a_sheet_opened_while_an_answer_is_under_way_stays(page: Page) -> None:
    """The answer was asked for before the hand came down, and is dropped."""
    make_kind()
    page.goto("/kinds/")
    held: list[Route] = []
    page.route("**/kinds/live/", lambda route: held.append(route))
    with page.expect_request("**/kinds/live/"):
        pass
    page.locator("summary", has_text="Pause…").click()
    page.get_by_label("Reason").first.fill("half a sen")
    lifecycle.hold_provider("acme", by="bea", reason="x")
    with page.expect_response("**/kinds/live/"):
        held[0].continue_()
    page.wait_for_timeout(500)  # the swap that must not come would come at once
    expect(page.get_by_label("Reason").first).to_have_value("half a sen")
    expect(page.locator("#kinds-live")).not_to_contain_text("Put on hold by bea")
    page.unroute_all()


def test_a_filter_keeps_its_text_and_the_caret(page: Page) -> None:
    task = make_task(subject="Wrong invoice")
    page.goto("/tasks/")
    search = page.get_by_role("searchbox", name="Search")
    search.press_sequentially("inv")
    expect(page).to_have_url(re.compile("q=inv"))
    lifecycle.cancel([task.pk], actor="bea")
    expect(page.locator(f"#task-{task.pk}")).to_contain_text("cancelled")
    expect(search).to_be_focused()
    search.press_sequentially("oice")
    expect(search).to_have_value("invoice")


def test_a_task_that_dies_under_the_eye_brings_its_letter(page: Page) -> None:
    """No reload: the letter stands on the page, first."""
    task = deaths.submit()
    page.goto(f"/tasks/{task.pk}/")
    expect(page.locator("#letters")).to_have_count(0)
    deaths.run()
    expect(page.locator("#letters .title")).to_have_text("the model is on fire")
    panels = page.locator("#task-live > .stack > section")
    expect(panels.first).to_have_id("letters")


def test_a_dead_task_that_is_sent_again_elsewhere_is_followed(page: Page) -> None:
    task = make_task(Status.DEAD)
    page.goto(f"/tasks/{task.pk}/")
    expect(page.locator("#task-live")).to_contain_text("Died")
    lifecycle.reprocess([task.pk], actor="bea")
    expect(page.locator("#task-live")).to_contain_text("reprocessed by bea")


def test_the_columns_of_a_task_flow_apart(page: Page) -> None:
    """However tall the facts are, no gap opens between the event log and the payload."""
    page.set_viewport_size({"width": 1600, "height": 900})
    task = make_task(tags=[f"tag-{n}-{'x' * 40}" for n in range(30)])
    page.goto(f"/tasks/{task.pk}/")
    log = page.locator("section:has(#events)").bounding_box()
    payload = page.locator("#payload").bounding_box()
    facts = page.locator("aside").bounding_box()
    assert log is not None and payload is not None and facts is not None
    assert facts["height"] > log["height"] * 5
    assert payload["y"] - (log["y"] + log["height"]) == pytest.approx(16, abs=2)
    assert Task.objects.count() == 1


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_that_fails_is_marked_and_found_again(page: Page, status: int) -> None:
    make_task()
    page.goto("/tasks/")
    page.route("**/tasks/rows/**", lambda route: route.fulfill(status=status, body="<h1>no</h1>"))
    expect(page.locator("#live-mark")).to_have_text("reconnecting")
    expect(page.locator("#task-rows tr")).to_have_count(1)
    expect(page.locator("main")).not_to_contain_text("no</h1>")
    page.unroute_all()
    expect(page.locator("#live-mark")).to_have_text("live")


def test_the_tab_that_is_on_is_in_sight_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/tasks/?status=cancelled")
    expect(page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=0.9)
