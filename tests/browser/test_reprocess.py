"""The main path, whole: sign in → task list → dead letter → Reprocess → succeeded; with a real worker and provider."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.models import Task
from tests.browser.conftest import DEADLINE, sign_in
from tests.chat import chat, error
from tests.cluster import QCluster, wait_until
from tests.deadletters import deaths
from tests.factories import make_kind, make_provider
from tests.provider import Reply, ScriptedProvider

TOO_LONG = "This model's maximum context length is 4096 tokens, however you requested 5021 tokens."


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    """Refuses the first call for good, answers the second."""

    def answer(request: Any, number: int) -> Reply:
        if number == 1:
            return error(400, TOO_LONG, code="context_length_exceeded")
        return chat(request, "Please send the parcel back.")

    with ScriptedProvider() as server:
        server.script(answer)
        yield server


@pytest.fixture
def cluster(test_database_url: str, transactional_db: None) -> Iterator[QCluster]:
    """A worker on the test database."""
    with QCluster(test_database_url, REDRIVE_WORKERS=1) as running:
        yield running.wait_ready()


def test_from_the_sign_in_to_a_task_that_succeeded(
    open_page: Callable[..., Page], operator: User, provider: ScriptedProvider, cluster: QCluster
) -> None:
    make_provider("scripted", base_url=provider.base_url)
    make_kind("reply.draft", provider=make_provider("scripted"), model="m-1", prompt="Answer: {{ text }}")
    task = lifecycle.submit("reply.draft", {"subject": "Wrong size", "text": "Can I send it back?"})
    wait_until(lambda: Task.objects.get(pk=task.pk).status == "dead", "the task to die")

    page = open_page()
    sign_in(page, operator.username)
    page.get_by_role("link", name="Dead", exact=False).first.wait_for()
    page.get_by_role("link", name="Wrong size").click()
    expect(page.get_by_text("dead").first).to_be_visible()

    page.locator("#letters .title").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("maximum context length")
    expect(page.locator("#letter-live")).to_contain_text("open")
    expect(page.get_by_text(TOO_LONG).first).to_be_visible()

    page.get_by_text("Reprocess: 3 attempts, cycle 2").first.click()
    page.get_by_label("Reason").first.fill("the text is shorter now")
    page.locator("details.ask[open]").get_by_role("button", name="Reprocess: 3 attempts, cycle 2").click()

    expect(page.locator("#toasts")).to_contain_text("1 letter is sent again.")
    # Nobody reloads: the page itself follows the task to its end.
    expect(page.locator("#letter-live")).to_contain_text(
        "It was sent again and succeeded.", timeout=2 * DEADLINE * 1000
    )
    expect(page.locator("#letter-live")).to_contain_text("succeeded")
    expect(page.locator("#letter-attempts")).to_contain_text("Cycle 2")
    page.get_by_role("link", name="Its task").click()
    expect(page.get_by_text("Please send the parcel back.").first).to_be_visible()

    letter = DeadLetter.objects.get(task=task)
    assert letter.state == "recovered"
    assert letter.events.get(to_state="reprocessed").reason == "the text is shorter now"
    assert [request.json["model"] for request in provider.requests] == ["m-1", "m-1"]


def test_ticked_letters_are_decided_together_and_the_list_keeps_still(page: Page) -> None:
    for _ in range(4):
        deaths.letter()
    page.goto("/dead-letters/")
    rows = page.locator("#letter-rows tr")
    expect(rows).to_have_count(4)
    expect(page.locator("#bulk")).to_be_hidden()

    ids = [row.get_attribute("data-id") for row in rows.all()]
    rows.nth(1).get_by_role("checkbox").check()
    rows.nth(2).get_by_role("checkbox").check()
    expect(page.locator("#live-mark")).to_have_text("paused for you")
    # A discard without a reason does not leave the page, and the ticks stay.
    page.get_by_role("button", name="Discard 2").click()
    expect(page.locator("input.tick:checked")).to_have_count(2)
    # Enter in the reason presses no button.
    page.get_by_label("Reason").last.fill("old tickets")
    page.get_by_label("Reason").last.press("Enter")
    assert DeadLetter.objects.open().count() == 4

    page.get_by_role("button", name="Discard 2").click()
    expect(page.locator("#toasts")).to_contain_text("2 letters are discarded.")
    expect(rows).to_have_count(2)
    discarded = DeadLetter.objects.filter(state="discarded", discard_reason="old tickets")
    assert {str(letter.pk) for letter in discarded} == {ids[1], ids[2]}


def test_a_row_that_somebody_else_decided_stays_in_place_and_says_so(page: Page) -> None:
    from deadletters import triage
    from tests.deadletters import people

    first, second = deaths.letter(), deaths.letter()
    page.goto("/dead-letters/")
    triage.discard([second.pk], user=people.operator("bo"), reason="x")
    row = page.locator(f"#letter-{second.pk}")
    expect(row).to_contain_text("no longer matches the filter")
    expect(row).to_have_class(re.compile("left"))
    expect(page.locator("#letter-rows tr").nth(1)).to_have_id(f"letter-{first.pk}")


def test_new_letters_wait_behind_a_line(page: Page) -> None:
    deaths.letter()
    page.goto("/dead-letters/")
    deaths.letter()
    expect(page.locator("#new-letters")).to_contain_text("1 new")
    expect(page.locator("#letter-rows tr")).to_have_count(1)
    page.locator("#new-letters a").click()
    expect(page.locator("#letter-rows tr")).to_have_count(2)


def test_everything_works_without_scripts(open_page: Callable[..., Page], operator: User) -> None:
    letter = deaths.letter()
    page = open_page(as_=operator.username, java_script_enabled=False)
    page.goto("/dead-letters/?state=open")
    page.locator("tbody .title").click()
    page.get_by_text("Discard…").click()
    page.locator("details.ask[open] textarea").fill("a duplicate")
    page.get_by_role("button", name="Discard the letter").click()
    expect(page.locator("#toasts")).to_contain_text("1 letter is discarded.")
    page.get_by_role("button", name="Restore").click()
    expect(page.locator("#toasts")).to_contain_text("1 letter is open again.")
    page.goto("/dead-letters/")
    page.locator("input.tick").first.check()
    page.get_by_role("button", name="Reprocess").click()
    expect(page.locator("#toasts")).to_contain_text("1 letter is sent again.")
    letter.refresh_from_db()
    assert letter.state == "reprocessed"


@pytest.mark.parametrize("width", [390, 1024, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_the_screen(
    width: int, scheme: str, open_page: Callable[..., Page], operator: User
) -> None:
    letter = deaths.letter(payload={"text": "x" * 3_000}, session_id="s" * 150)
    page = open_page(as_=operator.username, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for path in ("/dead-letters/", "/dead-letters/?state=cancelled", f"/dead-letters/{letter.pk}/"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
