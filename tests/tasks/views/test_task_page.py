"""The page of one task."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tasks import lifecycle
from tasks.lifecycle.moves import note
from tasks.models import Task, TaskEvent
from tasks.states import Outcome, Status
from tasks.views import history, timeline
from tests.factories import make_attempt, make_call, make_task, make_user
from tests.tasks.views.doors import HTMX

pytestmark = pytest.mark.django_db


def client() -> Client:
    """Somebody who may look and act."""
    found = Client()
    found.force_login(User.objects.filter(username="ana").first() or make_user())
    return found


def read(task: Task, part: str = "", **headers: str) -> str:
    """The page, or a part of it."""
    response = client().get(f"/tasks/{task.pk}/{part}", headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def text(page: str) -> str:
    """The page's text, one space between its parts."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


@pytest.mark.parametrize("status", [status for status in Status if status != Status.WAITING])
def test_every_status_has_its_page(status: Status) -> None:
    """With badge, sentence, facts, payload."""
    task = make_task(status, session_id="s-1", user_id="u-1", trace_id="t-1", tags=["vip"], priority=7)
    page = text(read(task))
    assert f"{status} " in page and "Late again" in page and "ticket.triage" in page
    assert "Priority 7" in page and "Session s-1" in page and "User u-1" in page and "Trace t-1" in page
    assert "{ &quot;subject&quot;: &quot;Late again&quot; }" in page


def test_facts_lead_to_their_lists() -> None:
    """Other tasks of the session, say."""
    page = read(make_task(session_id="s/1", tags=["a&b"]))
    assert 'href="/tasks/?session=s/1"' in page and 'href="/tasks/?tag=a%26b"' in page


def test_attempts_are_numbered_by_what_they_cost() -> None:
    """Counted ones only, within their cycle; all cycles, newest first."""
    task = make_task(Status.DEAD)
    lifecycle.reprocess([task.pk], actor="bea")
    task.refresh_from_db()
    make_attempt(task, Outcome.SNOOZED)
    make_attempt(task, Outcome.FAILED, repairs=2)
    make_attempt(task, Outcome.LOST, error_code="AI_WORKER_LOST")
    make_attempt(task, Outcome.RUNNING)
    page = text(read(task))
    heads = re.findall(r"Cycle \d|Attempt \d|Not counted", page[: page.index("Event log")])
    second = ["Cycle 2", "Attempt 2", "Not counted", "Attempt 1", "Not counted"]
    assert heads == [*second, "Cycle 1", "Attempt 3", "Attempt 2", "Attempt 1"]
    assert "Cycle 2 · reprocessed by bea" in page
    assert "asked again 2 times" in page and "its worker process vanished, no budget used" in page


def test_an_attempt_tells_its_error_and_what_followed() -> None:
    """Code, status, error, decision, tokens, cost, prompt version, provider, worker, fingerprint."""
    task = make_task(Status.RETRYABLE)
    page = text(read(task))
    assert "Attempt 1 failed AI_UPSTREAM_5XX HTTP 500 openai.InternalServerError: 500 the model is on fire" in page
    assert "retried after 1.0 s 160 tokens $0.0012 prompt v1 acme worker worker-1:" in page
    assert "fingerprint 219f3c" in page or "fingerprint 9f3c21ab" in page


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (
            {"action": "retry", "delay_seconds": 2.0, "hint_seconds": 2},
            "retried after 2.0 s (the provider asked for 2.0 s)",
        ),
        ({"action": "snooze", "delay_seconds": 4.0}, "put off 4.0 s, no budget used"),
        (
            {"action": "snooze", "delay_seconds": 1.0, "because": "provider_held"},
            "the provider was on hold: put off 1.0 s, no budget used",
        ),
        ({"action": "die", "reason": "not_retryable"}, "died: not retryable"),
    ],
)
def test_a_decision_is_told_in_words(decision: dict[str, Any], words: str) -> None:
    """Not as JSON."""
    task = make_task()
    make_attempt(task, Outcome.FAILED, decision=decision)
    assert words in text(read(task))


def test_older_attempts_are_a_page_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbered as if all were shown."""
    monkeypatch.setattr(timeline, "SHOWN", 2)
    task = make_task(Status.DEAD)
    first = task.attempts.first()
    page = read(task)
    assert "Attempt 1" not in text(page)
    link = re.search(r'href="(/tasks/[^"]+/attempts/\?before=\d+)"', page)
    assert link and first
    older = text(client().get(link[1]).content.decode())
    assert "Attempt 1" in older and "Attempt 2" not in older


def test_questions_about_unknown_work_are_in_the_event_log() -> None:
    """How often, when again, and what went wrong; personal data is masked."""
    task = make_task(Status.UNKNOWN)
    data = {"asks": 2, "delay_seconds": 2.0, "error": "ShopClosed: jane.roe@example.com is out"}
    note([(task.pk, "asked", None, "", data)])
    log = text(read(task))
    assert "its handler was asked what became of the work, and cannot tell yet · after 2.0 s · asked 2 ×" in log
    assert "ShopClosed" in log and "jane.roe" not in log


def test_the_event_log_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newest first; older ones a page away."""
    task = make_task(Status.DEAD)
    lifecycle.reprocess([task.pk], actor="bea")
    page = read(task)
    log = text(page[page.index('<ol class="events">') :])
    assert "sent again with a fresh budget by bea → ready" in log
    assert "died · AI_UPSTREAM_5XX" in log and log.index("sent again") < log.index("died") < log.index("submitted")
    monkeypatch.setattr(history, "SHOWN", 3)
    link = re.search(r'href="(/tasks/[^"]+/events/\?before=\d+)"', read(task))
    assert link and "submitted" in client().get(link[1]).content.decode()


def test_progress_of_a_running_task() -> None:
    """Steps with a bar, or tokens."""
    task = make_task(Status.RUNNING)
    Task.objects.filter(pk=task.pk).update(progress={"step": 2, "total": 3, "text": "asking"})
    page = read(task)
    assert "Step 2 of 3" in page and '<progress class="bar" id="progress" max="3" value="2">' in page
    Task.objects.filter(pk=task.pk).update(progress={"tokens": 214})
    assert "214 tokens so far" in read(task)


def test_the_live_part_ends_when_the_task_has() -> None:
    """``data-settled`` stops the asking; until then it is asked every two seconds."""
    assert "data-settled" in read(make_task(Status.SUCCEEDED), "live/")
    assert "data-settled" not in read(make_task(Status.DEAD), "live/")  # it may be sent again
    page = read(make_task(Status.RUNNING), "live/")
    assert "data-settled" not in page and "<html" not in page


def test_the_result_is_shown() -> None:
    """Once there is one."""
    assert "Result" not in text(read(make_task()))
    page = text(read(make_task(Status.SUCCEEDED)))
    assert "Result" in page and "&quot;category&quot;: &quot;billing&quot;" in page


@pytest.mark.parametrize("value", ["plain text", 7, None, True, [1, 2], {"a": None}])
def test_any_json_value_is_shown(value: Any) -> None:
    """A payload is any JSON value."""
    task = make_task(payload=value)
    assert read(task)


def test_a_long_payload_is_loaded_on_demand() -> None:
    """As a fragment for its fold, as a page without scripts; masked in both."""
    task = make_task(payload={"text": "x" * 9_000, "key": "sk-abcdefghijklmnopqrstuvwxyz012345"})
    page = read(task)
    assert "xxxxxxxxx" not in page and f'href="/tasks/{task.pk}/payload/"' in page
    fragment = read(task, "payload/", **HTMX)
    assert fragment.startswith("<pre ") and "x" * 9_000 in fragment and "sk-abcdefghij" not in fragment
    whole = read(task, "payload/")
    assert "<html" in whole and "x" * 9_000 in whole


def test_a_huge_payload_is_cut_with_a_mark() -> None:
    """A megabyte is no page."""
    task = make_task(payload="y" * 900_000)
    fragment = read(task, "payload/", **HTMX)
    assert len(fragment) < 210_000 and "(cut here; 900,000 characters in all)" in fragment


def test_details_of_an_attempt_come_on_demand() -> None:
    """The whole error, masked; the trail of model calls; also as a page of its own."""
    task = make_task()
    failure = {
        "exception": "acme.Error",
        "http_status": 401,
        "traceback": "File x\nkey sk-abcdefghijklmnopqrstuvwxyz012345",
    }
    attempt = make_attempt(task, Outcome.FAILED, failure=failure, last_error="e" * 2_000)
    make_call(attempt, answer="Dear <b>customer</b>")
    page = read(task)
    assert "e" * 700 not in page and "Dear" not in page and "Error and 1 model call" in page
    fragment = read(task, f"attempts/{attempt.pk}/", **HTMX)
    assert "e" * 2_000 in fragment and "acme.Error" in fragment and "sk-abcdefghij" not in fragment
    assert "Dear &lt;b&gt;customer&lt;/b&gt;" in fragment and "Sort the ticket." in fragment
    assert "acme · m-1" in text(fragment) and "1.8 s" in fragment and "req-7" in fragment
    assert "<html" not in fragment and "<html" in read(task, f"attempts/{attempt.pk}/")


def test_an_attempt_of_another_task_is_a_404() -> None:
    """The address must be whole."""
    attempt = make_attempt(make_task())
    assert client().get(f"/tasks/{make_task().pk}/attempts/{attempt.pk}/").status_code == 404


@pytest.mark.parametrize("part", ["", "live/", "payload/", "attempts/", "events/", "attempts/7/"])
def test_an_unknown_task_is_a_404(part: str) -> None:
    """Pruned, or never there."""
    assert client().get(f"/tasks/0198c2e1-0000-7000-8000-000000000000/{part}").status_code == 404


@pytest.mark.parametrize("before", ["x", "-1", "9" * 30, "²"])
def test_an_edited_key_is_not_an_error(before: str) -> None:
    """It shows the newest."""
    task = make_task()
    assert "submitted" in read(task, f"events/?before={before}")
    assert read(task, f"attempts/?before={before}")


def test_an_error_of_strangers_stays_text() -> None:
    """Markup in it is shown, not obeyed."""
    task = make_task()
    make_attempt(task, Outcome.FAILED, last_error="<script>alert(1)</script>")
    assert "&lt;script&gt;alert(1)" in read(task) and "<script>alert(1)" not in read(task)


def test_who_may_only_look_sees_cancel_disabled_with_the_reason() -> None:
    """Not hidden."""
    viewer = Client()
    viewer.force_login(make_user("vera", "view"))
    page = viewer.get(f"/tasks/{make_task().pk}/").content.decode()
    assert 'aria-disabled="true"' in page and "Ask for the group “operate”." in page
    assert "/cancel/" not in re.sub(r'(id|aria-describedby)="denied:[^"]+"', "", page)


def test_cancel_is_disabled_with_the_reason_once_it_has_ended() -> None:
    """For who may act, too."""
    page = read(make_task(Status.SUCCEEDED))
    assert 'aria-disabled="true"' in page and "It has ended: there is nothing to cancel." in page


def test_queries_do_not_grow_with_the_history() -> None:
    """One attempt or thirty."""
    task = make_task()
    somebody = client()

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            somebody.get(f"/tasks/{task.pk}/")
        return len(queries)

    make_attempt(task)
    few = cost()
    for number in range(30):
        attempt = make_attempt(task, [Outcome.FAILED, Outcome.SNOOZED, Outcome.LOST][number % 3])
        make_call(attempt)
        TaskEvent.objects.create(task=task, seq=100 + number, type="retry", cycle=1, attempt=attempt)
    assert cost() == few <= 25
