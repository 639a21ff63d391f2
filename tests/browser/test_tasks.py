"""The task list and page as a person meets them: live, but still under the hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page, expect

from tasks import lifecycle
from tasks.models import OperatorAction, Task
from tasks.states import Outcome, Status
from tests.factories import make_attempt, make_call, make_kind, make_task, make_worker

pytestmark = pytest.mark.django_db(transaction=True)
OpenPage = Callable[..., Page]


def test_rows_change_in_place(page: Page) -> None:
    """Within two seconds or so; ticks of nobody, nothing else moves."""
    tasks = [make_task(ago=ago) for ago in (5, 10, 15)]
    page.goto("/tasks/")
    order = page.locator("#task-rows tr").evaluate_all("rows => rows.map(row => row.id)")
    lifecycle.cancel([tasks[1].pk], actor="ana")
    expect(page.locator(f"#task-{tasks[1].pk}")).to_contain_text("cancelled")
    assert page.locator("#task-rows tr").evaluate_all("rows => rows.map(row => row.id)") == order
    expect(page.locator("#live-mark")).to_have_text("live")


def test_only_rows_on_the_screen_are_asked_for(open_page: OpenPage, operator: User) -> None:
    """Not all fifty."""
    tasks = [make_task(ago=ago) for ago in range(1, 41)]
    page = open_page(as_="ana", viewport={"width": 1200, "height": 500})
    page.goto("/tasks/")
    with page.expect_request(re.compile("/tasks/rows/")) as asked:
        pass
    ids = re.findall(r"[?&]id=([0-9a-f-]{36})", asked.value.url)
    assert ids == [str(task.pk) for task in tasks[: len(ids)]]
    assert 3 <= len(ids) < 25


def test_new_rows_wait_behind_a_link(page: Page) -> None:
    """The list does not move; the link brings them."""
    make_task(subject="Old one", ago=60)
    page.goto("/tasks/?status=ready")
    make_task(subject="New one", ago=0)
    make_task(Status.DEAD, subject="Of another status", ago=0)
    link = page.get_by_role("link", name="1 new")
    expect(link).to_be_visible()
    expect(page.locator("#task-rows tr")).to_have_count(1)
    link.click()
    expect(page.locator("#task-rows tr")).to_have_count(2)
    assert page.url.endswith("/tasks/?status=ready")


def test_the_first_row_of_an_empty_list_is_announced(page: Page) -> None:
    """Somebody waits for it."""
    page.goto("/tasks/")
    expect(page.get_by_text("No task yet")).to_be_visible()
    make_task()
    page.get_by_role("link", name="1 new").click()
    expect(page.locator("#task-rows tr")).to_have_count(1)


def test_nothing_moves_while_a_row_is_ticked(page: Page) -> None:
    """The mark says so; untick, and it goes on."""
    task = make_task()
    page.goto("/tasks/")
    page.locator(f"#tick-{task.pk}").check()
    expect(page.locator("#live-mark")).to_have_text("paused for you")
    polls: list[str] = []
    page.on("request", lambda request: polls.append(request.url) if "/rows/" in request.url else None)
    lifecycle.pause_kind("ticket.triage", by="bea", reason="x")
    page.wait_for_timeout(4_500)  # two beats and more: the point is that nothing happens
    assert polls == []
    expect(page.locator(f"#task-{task.pk}")).not_to_contain_text("kind paused")
    page.get_by_role("button", name="Untick").click()
    expect(page.locator("#live-mark")).to_have_text("live")
    expect(page.locator(f"#task-{task.pk}")).to_contain_text("kind paused")


def test_a_hidden_tab_asks_for_nothing(page: Page) -> None:
    """And catches up at once when it is looked at again."""
    task = make_task()
    page.goto("/tasks/")
    page.evaluate("""() => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });
      document.dispatchEvent(new Event('visibilitychange'));
    }""")
    expect(page.locator("#live-mark")).to_have_text("paused")
    lifecycle.cancel([task.pk], actor="bea")
    page.wait_for_timeout(4_500)  # two beats and more: the point is that nothing happens
    expect(page.locator(f"#task-{task.pk}")).not_to_contain_text("cancelled")
    page.evaluate("""() => {
      delete document.hidden;
      document.dispatchEvent(new Event('visibilitychange'));
    }""")
    expect(page.locator(f"#task-{task.pk}")).to_contain_text("cancelled", timeout=1_500)


def test_a_lost_server_is_marked_and_found_again(page: Page, complaints: list[str]) -> None:
    """“reconnecting”, then “live”."""
    make_task()
    page.goto("/tasks/")
    page.context.set_offline(True)
    expect(page.locator("#live-mark")).to_have_text("reconnecting")
    page.context.set_offline(False)
    expect(page.locator("#live-mark")).to_have_text("live")
    assert all("Failed to fetch" in complaint for complaint in complaints)
    complaints.clear()


def test_the_filter_changes_the_address_and_back_undoes_it(page: Page) -> None:
    """Typing narrows; the address holds the filter and nothing blank; back brings the whole page."""
    make_task(subject="Wrong invoice")
    make_task(subject="Lost parcel")
    page.goto("/tasks/")
    page.get_by_label("Search").fill("invoice")
    expect(page.locator("#task-rows tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/tasks/\?q=invoice$"))
    expect(page.locator(".chip")).to_contain_text("Search: invoice")
    page.go_back()
    expect(page).to_have_url(re.compile(r"/tasks/$"))
    expect(page.locator("#task-rows tr")).to_have_count(2)
    expect(page.get_by_label("Search")).to_have_value("")


def test_ticked_rows_are_cancelled_with_a_reason(page: Page) -> None:
    """The count before, the sentence after, the audit row, the rows as they are now."""
    tasks = [make_task() for _ in range(3)]
    page.goto("/tasks/")
    expect(page.locator("#bulk")).to_be_hidden()
    for task in tasks[:2]:
        page.locator(f"#tick-{task.pk}").check()
    expect(page.locator("[data-ticked-count]")).to_have_text("2")
    page.get_by_placeholder("Reason, kept in the audit").fill("test data")
    page.get_by_role("button", name="Cancel the ticked tasks").click()
    expect(page.locator("#toasts")).to_contain_text("2 tasks are cancelled.")
    expect(page.locator(f"#task-{tasks[0].pk}")).to_contain_text("cancelled")
    expect(page.locator("#bulk")).to_be_hidden()
    action = OperatorAction.objects.get(action="cancel_tasks")
    assert (action.count, action.reason) == (2, "test data")


def test_an_expired_login_leads_to_the_login_and_back(page: Page) -> None:
    """From a poll, with the filter kept."""
    make_task()
    page.goto("/tasks/?status=ready")
    page.context.clear_cookies()
    page.wait_for_url("**/login/?next=%2Ftasks%2F%3Fstatus%3Dready")
    expect(page.get_by_label("Password")).to_be_visible()


def test_the_task_page_follows_its_task(page: Page) -> None:
    """Ready, running with progress, succeeded with its result; then it is settled and asks no more."""
    make_worker()
    task = make_task()
    page.goto(f"/tasks/{task.pk}/")
    expect(page.locator("#task-live")).to_contain_text("Ready: it starts as soon as a worker has a free slot.")
    worker = make_worker()
    (claimed,) = lifecycle.claim(worker.pk, 1, [])
    Task.objects.filter(pk=task.pk).update(progress={"step": 1, "total": 2, "text": "asking"})
    expect(page.locator("#task-live")).to_contain_text("Step 1 of 2")
    expect(page.locator("#task-live")).to_contain_text("Attempt 1 of 3 started")
    page.locator("#events summary").click()
    end = lifecycle.End(
        task_id=task.pk, attempt_id=claimed.attempt_id, outcome=Outcome.SUCCEEDED, result_text='{"ok": 1}'
    )
    lifecycle.finish(worker.pk, [end])
    expect(page.locator("#result")).to_contain_text('"ok": 1')
    expect(page.locator("#events .events")).to_be_visible()
    expect(page.locator("#live-mark")).to_have_text("settled")


def test_an_opened_fold_stays_open_with_what_was_loaded(page: Page) -> None:
    """While the page around it refreshes."""
    task = make_task(Status.RUNNING)
    attempt = make_attempt(task, Outcome.FAILED, at=timezone.now() - timedelta(minutes=1))
    make_call(attempt, answer="Dear customer")
    page.goto(f"/tasks/{task.pk}/")
    page.get_by_text("Error and 1 model call").click()
    expect(page.get_by_text("Dear customer")).to_be_visible()
    lifecycle.cancel([task.pk], actor="bea")
    expect(page.locator("#task-live")).to_contain_text("Cancel was asked for")
    expect(page.get_by_text("Dear customer")).to_be_visible()


def test_cancel_asks_first_and_answers_in_place(page: Page) -> None:
    """The sheet opens with the focus in it, Escape gives it back; then the task is cancelled."""
    task = make_task()
    page.goto(f"/tasks/{task.pk}/")
    reason = page.locator("form[action$='/cancel/']").get_by_label("Reason")
    page.locator("summary", has_text="Cancel…").click()
    expect(reason).to_be_focused()
    page.keyboard.press("Escape")
    expect(reason).to_be_hidden()
    expect(page.locator("summary", has_text="Cancel…")).to_be_focused()
    page.keyboard.press("Enter")
    reason.fill("wrong customer")
    page.get_by_role("button", name="Cancel the task").click()
    expect(page.locator("#toasts")).to_contain_text("The task is cancelled.")
    expect(page.locator("#task-live")).to_contain_text("Cancelled")
    assert OperatorAction.objects.get(action="cancel_task").reason == "wrong customer"


def test_ids_copy_on_click(open_page: OpenPage, operator: User) -> None:
    """The whole id, though eight characters are shown."""
    task = make_task()
    page = open_page(as_="ana", permissions=["clipboard-read", "clipboard-write"])
    page.goto("/tasks/")
    page.get_by_role("button", name=f"Copy {task.pk}").click()
    assert page.evaluate("navigator.clipboard.readText()") == str(task.pk)


def test_keys_lead_around(page: Page) -> None:
    """Search, rows, tick, pages."""
    tasks = [make_task(ago=ago) for ago in (5, 10)]
    page.goto("/tasks/")
    page.keyboard.press("/")
    expect(page.get_by_label("Search")).to_be_focused()
    page.get_by_label("Search").blur()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(f"#task-{tasks[1].pk} .title")).to_be_focused()
    page.keyboard.press("x")
    expect(page.locator(f"#tick-{tasks[1].pk}")).to_be_checked()
    page.keyboard.press("g")
    page.keyboard.press("k")
    page.wait_for_url("**/kinds/")


def test_without_scripts_everything_still_works(open_page: OpenPage, operator: User) -> None:
    """Sign in, filter, read a long payload, pause with a reason, cancel."""
    make_kind()
    task = make_task(subject="Wrong invoice", payload={"text": "z" * 9_000})
    make_task(subject="Lost parcel")
    page = open_page(as_="ana", java_script_enabled=False)
    page.get_by_label("Search").fill("invoice")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#task-rows tr")).to_have_count(1)
    page.get_by_role("link", name="Wrong invoice").click()
    page.get_by_text("Show it").click()
    page.get_by_role("link", name="Loading… or open it as a page").click()
    expect(page.locator("pre")).to_contain_text("z" * 9_000)
    page.go_back()
    page.get_by_text("Cancel…").click()
    page.get_by_role("button", name="Cancel the task").click()
    expect(page.locator("#toasts")).to_contain_text("The task is cancelled.")
    page.goto("/kinds/")
    page.get_by_text("Pause…").click()
    page.get_by_label("Reason").first.fill("wrong language")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("ticket.triage is paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#toasts")).to_contain_text("ticket.triage runs again.")
    task.refresh_from_db()
    assert task.status == Status.CANCELLED


def test_pause_and_resume_in_place(page: Page) -> None:
    """With scripts: a message, the row as it is now, no page load."""
    make_worker()
    make_kind()
    page.goto("/kinds/")
    page.evaluate("window.stayed = true")
    page.locator("summary", has_text="Pause…").click()
    page.get_by_label("Reason").first.fill("wrong language")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator("[id='kind-ticket.triage']")).to_contain_text("Paused by ana")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("[id='kind-ticket.triage']")).to_contain_text("takes tasks")
    assert page.evaluate("window.stayed") is True
