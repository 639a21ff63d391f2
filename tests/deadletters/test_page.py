"""The page of one letter."""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from tasks import lifecycle
from tasks.models import ErrorCode
from tests.deadletters import deaths, people
from tests.deadletters.verb_cases import signed_in

pytestmark = pytest.mark.django_db


def page_of(letter_id: UUID, client: Client | None = None, part: str = "") -> str:
    """The page's text, its white space folded."""
    response = (client or signed_in()).get(f"/dead-letters/{letter_id}/{part}")
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_it_says_everything_that_is_known() -> None:
    code = ErrorCode.objects.get(pk="AI_PROVIDER_ERROR") if ErrorCode.objects.filter(pk="AI_PROVIDER_ERROR") else None
    ErrorCode.objects.update_or_create(
        pk="AI_PROVIDER_ERROR",
        defaults={
            "title": "The provider failed",
            "runbook": "Look at its status page.",
            "next_step": "Wait, then reprocess.",
            "user_message": "Our helper is resting.",
            "level": code.level if code else "L1",
        },
    )
    letter = deaths.letter(payload={"text": "my parcel"}, session_id="s-1", user_id="u-1", trace_id="t-1")
    page = page_of(letter.id)
    for expected in (
        "InternalServerError: 500: the model is on fire",
        "AI_PROVIDER_ERROR",
        "The provider failed.",
        "Look at its status page.",
        "Wait, then reprocess.",
        "Our helper is resting.",
        "The error is one that trying again cannot mend.",
        "ffffffff",
        "letters alike",
        "openai.InternalServerError",
        "httpx2.ConnectError: refused",
        "handlers.py:3",
        "ask(model)",
        "my parcel",
        "s-1",
        "u-1",
        "t-1",
        "req-7",
        "Attempt 1",
    ):
        assert expected in page, expected


def test_the_number_of_letters_alike_is_that_of_the_list_it_leads_to() -> None:
    """Open ones; an open letter does not count itself, and says so."""
    letter, closed = deaths.letter(), deaths.letter(state="discarded")
    link = f'?fingerprint={"f" * 40}">1'
    assert "&amp;state=all" in page_of(letter.id).partition("letters alike")[0][-40:]
    assert f"{link} open letter alike" in page_of(closed.id)
    deaths.letter()
    assert f"{link} other open letter alike" in page_of(letter.id)


def test_the_button_says_the_budget_and_the_cycle() -> None:
    letter = deaths.letter()
    assert "Reprocess: 3 attempts, cycle 2" in page_of(letter.id)
    once = deaths.letter(of=deaths.kind("once", max_attempts=1))
    assert "Reprocess: 1 attempt, cycle 2" in page_of(once.id)


@pytest.mark.parametrize(
    ("state", "reprocess", "discard"),
    [
        ("open", "", ""),
        ("reprocessed", "ana sent it again at ", "ana sent it again at "),
        ("recovered", "It was sent again and succeeded", "It was sent again and succeeded"),
        ("died_again", "act on the letter of the later cycle", "act on the letter of the later cycle"),
        ("cancelled", "its task was cancelled", "its task was cancelled"),
        ("discarded", "Restore it first", None),
    ],
)
def test_a_button_that_is_not_for_now_says_why(state: str, reprocess: str, discard: str | None) -> None:
    letter = deaths.letter(state=state)
    page = page_of(letter.id, part="live/")
    disabled = dict(re.findall(r'role="tooltip" id="denied:[^"]*/([a-z]+)/">(.*?)<', page))
    assert ("reprocess" in disabled) == bool(reprocess)
    assert reprocess in disabled.get("reprocess", "")
    if discard is None:
        assert f'action="/dead-letters/{letter.id}/restore/"' in page
    else:
        assert discard in disabled.get("discard", "")
        assert ("discard" in disabled) == bool(discard)


def test_who_may_only_look_sees_the_buttons_disabled() -> None:
    letter = deaths.letter()
    page = page_of(letter.id, signed_in(people.viewer()))
    assert '<form class="sheet"' not in page
    assert "You may look, not act." in page
    assert "the model is on fire" in page


def test_after_reprocess_the_live_part_shows_the_task_until_it_ends() -> None:
    letter = deaths.letter(state="reprocessed")
    page = page_of(letter.id, part="live/")
    assert "It was sent again and has not ended yet." in page
    assert f'<a href="/tasks/{letter.task_id}/">Its task</a>' in page
    assert "ready</span>" in page
    assert "data-settled" not in page

    deaths.succeed()
    page = page_of(letter.id, part="live/")
    assert "It was sent again and succeeded." in page
    assert "data-settled" in page


def test_what_it_would_wait_for_is_said_before_it_is_sent() -> None:
    letter = deaths.letter()
    assert "it would wait" not in page_of(letter.id)
    lifecycle.hold_provider("acme", by="", reason="the key was refused", code="AI_AUTH_FAILED")
    page = page_of(letter.id, part="live/")
    assert "Sent again now, it would wait. Provider acme is on hold. Put on hold by the system" in page
    assert "the key was refused" in page
    lifecycle.pause_kind("ticket.triage", by="bo", reason="a bad prompt")
    assert "Its kind is paused. Paused by bo" in page_of(letter.id, part="live/")


def test_a_letter_that_died_again_leads_to_the_next_one() -> None:
    letter = deaths.letter(state="died_again")
    later = deaths.letter_of(letter.task_id, cycle=2)
    page = page_of(letter.id, part="live/")
    assert f'<a href="/dead-letters/{later.id}/">To the letter of cycle 2</a>' in page


def test_the_history_names_who_and_why() -> None:
    letter = deaths.letter(state="discarded")
    page = page_of(letter.id)
    assert "History: 2 entries" in page
    assert "open → discarded · by ana" in page
    assert "“a test ticket”" in page


def test_a_death_without_attempt_has_a_page() -> None:
    task = deaths.submit(expires_at=timezone.now() - timedelta(seconds=1))
    lifecycle.expire()
    page = page_of(deaths.letter_of(task.id).id)
    assert "It expired before it could start." in page
    assert "No attempt yet." in page


def test_a_code_that_left_the_catalogue_is_named() -> None:
    letter = deaths.letter()
    ErrorCode.objects.filter(pk="AI_PROVIDER_ERROR").delete()
    assert "The catalogue has no code AI_PROVIDER_ERROR any more." in page_of(letter.id)


def test_personal_data_is_masked() -> None:
    task = deaths.submit({"text": "write to jane.doe@example.com"})
    deaths.run(failed=deaths.failed(traceback='  File "/srv/a.py", line 1, in f\n    mail("jane.doe@example.com")'))
    page = page_of(deaths.letter_of(task.id).id)
    assert "jane.doe" not in page


def test_a_long_payload_is_loaded_on_demand() -> None:
    task = deaths.submit({"text": "x" * 20_000})
    deaths.run()
    page = page_of(deaths.letter_of(task.id).id)
    assert "x" * 1_000 not in page
    assert f"/tasks/{task.id}/payload/" in page


def test_markup_of_strangers_stays_text() -> None:
    task = deaths.submit({"text": "<script>alert(1)</script>"})
    deaths.run(failed=deaths.failed(title="<img src=x onerror=alert(1)>"))
    page = page_of(deaths.letter_of(task.id).id)
    assert "<script>alert" not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize("part", ["", "live/"])
def test_an_unknown_letter_is_404(part: str) -> None:
    assert signed_in().get(f"/dead-letters/{UUID(int=7)}/{part}").status_code == 404


@pytest.mark.parametrize("part", ["", "live/"])
def test_nobody_looks_without_permission(part: str) -> None:
    letter = deaths.letter()
    path = f"/dead-letters/{letter.id}/{part}"
    assert Client().get(path).status_code == 302
    assert signed_in(people.person("nora")).get(path).status_code == 403


def test_who_may_configure_is_led_to_the_code() -> None:
    letter = deaths.letter()
    ErrorCode.objects.get_or_create(pk="AI_PROVIDER_ERROR")
    link = "/admin/tasks/errorcode/AI_5FPROVIDER_5FERROR/change/"
    assert link in page_of(letter.id, signed_in(people.configurer()))
    assert link not in page_of(letter.id)
