"""Everything by the keyboard alone, with the focus in sight and kept while the page refreshes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, Page, expect

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.models import Kind
from tests.deadletters import deaths
from tests.factories import PASSWORD, make_kind, make_task, make_worker

pytestmark = pytest.mark.django_db(transaction=True)
OpenPage = Callable[..., Page]
MOST_TABS = 60


def tab_to(page: Page, goal: Locator) -> None:
    """Press Tab until ``goal`` has the focus."""
    for _ in range(MOST_TABS):
        if goal.evaluate("(one) => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"{goal} is not reached by {MOST_TABS} times Tab")


def test_sign_in_reprocess_and_discard(open_page: OpenPage, operator: User) -> None:
    older, newer = deaths.letter(), deaths.letter()
    page = open_page()
    page.goto("/dead-letters/")
    page.keyboard.type(operator.username)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Dead letters")

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/dead-letters/{newer.pk}/")
    page.keyboard.press("r")
    expect(page.get_by_label("Reason").first).to_be_focused()
    page.keyboard.type("shorter now")
    tab_to(page, page.locator("details.ask[open] button[type=submit]"))
    page.keyboard.press("Enter")
    expect(page.locator("#letter-live")).to_contain_text("It was sent again and has not ended yet.")
    # The button that was pressed is gone: the focus is where it stood.
    expect(page.locator("#letter-live .state").locator("*:focus")).to_have_count(1)

    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/dead-letters/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/dead-letters/{older.pk}/")
    tab_to(page, page.locator("summary", has_text="Discard…"))
    page.keyboard.press("Enter")
    expect(page.locator("details.ask[open] textarea")).to_be_focused()
    page.keyboard.type("a duplicate")
    tab_to(page, page.get_by_role("button", name="Discard the letter"))
    page.keyboard.press("Enter")
    expect(page.locator("#letter-live")).to_contain_text("It was closed without running again.")
    page.keyboard.press("Alt+ArrowLeft")
    states = dict(DeadLetter.objects.values_list("pk", "state"))
    assert states == {older.pk: "discarded", newer.pk: "reprocessed"}


def test_ticked_letters_by_keys(page: Page) -> None:
    """j, x, r, Enter."""
    letters = [deaths.letter() for _ in range(3)]
    page.goto("/dead-letters/")
    for key in ("j", "x", "j", "j", "x", "k", "r"):
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="Reprocess 2")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("2 letters are sent again.")
    assert DeadLetter.objects.open().get() == letters[1]


def test_pause_and_resume_keep_the_focus_in_the_row(page: Page) -> None:
    make_worker()
    make_kind()
    page.goto("/kinds/")
    tab_to(page, page.locator("summary", has_text="Pause…"))
    page.keyboard.press("Enter")
    expect(page.locator("details.ask[open] textarea")).to_be_focused()
    page.keyboard.type("wrong language")
    tab_to(page, page.get_by_role("button", name="Pause", exact=True))
    page.keyboard.press("Enter")
    resume = page.get_by_role("button", name="Resume")
    expect(resume).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("summary", has_text="Pause…")).to_be_focused()
    assert Kind.objects.get().paused_at is None


def test_escape_closes_the_sheet_and_gives_the_focus_back(page: Page) -> None:
    make_kind()
    page.goto("/kinds/")
    pause = page.locator("summary", has_text="Pause…")
    tab_to(page, pause)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Reason").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(pause).to_be_focused()


@pytest.mark.parametrize("path", ["/tasks/", "/kinds/"])
def test_the_focus_stays_while_the_page_refreshes(page: Page, path: str) -> None:
    task = make_task()
    page.goto(path)
    goal = page.locator(f"#task-{task.pk} .title") if path == "/tasks/" else page.locator("summary", has_text="Pause…")
    goal.focus()
    with page.expect_response(re.compile("/tasks/rows/|/kinds/live/")):
        pass
    lifecycle.hold_provider("acme", by="bea", reason="x")
    expect(page.locator("main")).to_contain_text(re.compile("on hold", re.I))
    expect(goal).to_be_focused()


@pytest.mark.parametrize("path", ["/tasks/", "/dead-letters/", "/kinds/", "/audit/", "/profile/"])
def test_every_stop_is_seen(page: Page, path: str) -> None:
    """Each element that Tab reaches has an outline, and is not behind a bar."""
    deaths.letter()
    page.goto(path)
    unseen = []
    for _ in range(25):
        page.keyboard.press("Tab")
        name, outline, covered = page.evaluate("""() => {
          const one = document.activeElement;
          const box = one.getBoundingClientRect();
          const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
          const style = getComputedStyle(one);
          const covered = Boolean(top) && !one.contains(top) && !top.contains(one);
          return [one.outerHTML.slice(0, 80), style.outlineStyle !== "none" && style.outlineWidth, covered];
        }""")
        if name.startswith("<body"):
            break
        if not outline or covered:
            unseen.append(name)
    assert unseen == []


def test_the_keys_that_the_help_names_lead_there(page: Page) -> None:
    page.goto("/help/keys/")
    chords = [row.locator("kbd").all_inner_texts() for row in page.locator("tr").all()]
    ways = [chord[1] for chord in chords if chord[0] == "g"]
    assert sorted(ways) == ["a", "d", "k", "t", "w"]
    for key in ways:
        href = page.locator(f"[data-key={key}]").get_attribute("href")
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**{href}")
        page.keyboard.press("?")
        page.wait_for_url("**/help/")


def test_keys_can_be_turned_off(page: Page) -> None:
    """Who speaks to the machine must not open pages by words."""
    page.goto("/help/keys/")
    page.get_by_label("Single keys work in this browser").uncheck()
    page.goto("/help/words/")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.keyboard.press("?")
    page.goto("/help/keys/")
    expect(page.get_by_label("Single keys work in this browser")).not_to_be_checked()
    page.get_by_label("Single keys work in this browser").check()
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/tasks/")
