"""The list: what it shows, its filters, its pages, its live rows."""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from deadletters import triage
from deadletters.models import DeadLetter
from tasks.states import Reason
from tests.deadletters import deaths, people
from tests.deadletters.verb_cases import signed_in

pytestmark = pytest.mark.django_db


def shown(client: Client, query: str = "") -> list[UUID]:
    """The ids of the letters on the page, in its order."""
    page = client.get(f"/dead-letters/{query}").content.decode()
    return [UUID(found) for found in re.findall(r'<tr id="letter-[^"]+" data-id="([^"]+)"', page)]


def test_open_letters_are_shown_first_and_newest_on_top() -> None:
    first, second = deaths.letter(), deaths.letter()
    deaths.letter(state="discarded")
    assert shown(signed_in()) == [second.id, first.id]


def test_a_row_says_what_failed_and_why() -> None:
    deaths.letter(payload={"text": "late again"})
    page = signed_in().get("/dead-letters/").content.decode()
    assert "the model is on fire" in page
    assert "AI_PROVIDER_ERROR" in page
    assert "not retryable" in page
    assert "ticket.triage · acme" in page


@pytest.mark.parametrize("state", ["open", "reprocessed", "recovered", "died_again", "cancelled", "discarded"])
def test_each_state_has_its_list(state: str) -> None:
    letter = deaths.letter(state=state)
    assert shown(signed_in(), f"?state={state}") == [letter.id]


def test_all_states_at_once() -> None:
    letters = [deaths.letter(), deaths.letter(state="discarded"), deaths.letter(state="recovered")]
    assert set(shown(signed_in(), "?state=all")) == {letter.id for letter in letters}


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("?kind=refund", True),
        ("?kind=other", False),
        ("?code=AI_PROVIDER_ERROR", True),
        ("?code=AI_RATE_LIMITED", False),
        ("?reason=not_retryable", True),
        ("?reason=expired", False),
        (f"?fingerprint={'f' * 40}", True),
        ("?fingerprint=0", False),
        ("?provider=acme", True),
        ("?provider=openai", False),
        ("?session=s-1", True),
        ("?session=s-2", False),
        ("?user=u-1", True),
        ("?user=u-2", False),
        ("?trace=t-1", True),
        ("?trace=t-2", False),
        ("?q=ON+FIRE", True),
        ("?q=water", False),
        ("?since=1h", True),
        ("?since=2999-01-01", False),
        ("?until=2999-01-01", True),
        ("?until=2001-01-01", False),
        ("?kind=refund&session=s-2", False),
    ],
)
def test_each_filter_narrows(query: str, matches: bool) -> None:
    letter = deaths.letter(of=deaths.kind("refund"), session_id="s-1", user_id="u-1", trace_id="t-1")
    assert shown(signed_in(), query) == ([letter.id] if matches else [])


def test_an_id_finds_the_letter_and_a_tasks_id_its_letters() -> None:
    letter = deaths.letter()
    deaths.letter()
    client = signed_in()
    assert shown(client, f"?q={letter.id}") == [letter.id]
    assert shown(client, f"?q={letter.task_id}") == [letter.id]


def test_what_is_searched_for_is_text_and_no_pattern() -> None:
    deaths.letter()
    assert shown(signed_in(), "?q=%25") == []


@pytest.mark.parametrize("query", ["?since=yesterday", "?state=nonsense", "?reason=boredom"])
def test_a_filter_that_is_not_understood_shows_nothing_and_says_so(query: str) -> None:
    deaths.letter()
    page = signed_in().get(f"/dead-letters/{query}").content.decode()
    assert "Nothing is shown" in page
    assert 'role="alert"' in page


def test_the_empty_inbox_says_so() -> None:
    assert "No dead letters" in signed_in().get("/dead-letters/").content.decode()
    assert "No letter matches" in signed_in().get("/dead-letters/?kind=x").content.decode()
    assert "None in this state" in signed_in().get("/dead-letters/?state=discarded").content.decode()


def test_the_number_of_letters_alike_leads_to_them() -> None:
    for _ in range(3):
        deaths.letter()
    deaths.letter(state="discarded")
    page = signed_in().get("/dead-letters/").content.decode()
    assert re.search(rf'\?fingerprint={"f" * 40}"[^>]*>3</a>', page)


def test_a_page_is_bounded_and_leads_on() -> None:
    task = deaths.submit()
    made = [
        DeadLetter(task=task, cycle=100 + n, kind_id=task.kind_id, reason=Reason.EXPIRED, state="recovered")
        for n in range(120)
    ]
    DeadLetter.objects.bulk_create(made)
    client = signed_in()
    first = shown(client, "?state=recovered")
    assert len(first) == 50
    second = shown(client, f"?state=recovered&before={first[-1]}")
    third = shown(client, f"?state=recovered&before={second[-1]}")
    assert len({*first, *second, *third}) == 120
    assert shown(client, f"?state=recovered&after={second[0]}") == first


def test_a_page_costs_the_same_number_of_queries_however_long_it_is() -> None:
    client = signed_in()
    deaths.letter()
    client.get("/dead-letters/")
    with CaptureQueriesContext(connection) as few:
        client.get("/dead-letters/")
    for _ in range(20):
        deaths.letter()
    with CaptureQueriesContext(connection) as many:
        client.get("/dead-letters/")
    assert len(many) == len(few)


def test_the_count_stops() -> None:
    deaths.letter()
    deaths.letter()
    assert DeadLetter.objects.open().count_to(1) == 2
    with CaptureQueriesContext(connection) as queries:
        DeadLetter.objects.open().count_to(10_000)
    assert "LIMIT 10001" in queries[0]["sql"]


def test_live_rows_are_those_on_screen_as_they_are_now() -> None:
    stays, leaves = deaths.letter(), deaths.letter()
    triage.discard([leaves.id], user=people.operator("bo"), reason="x")
    gone = uuid4()
    client = signed_in()
    page = client.get("/dead-letters/rows/", {"id": [str(stays.id), str(leaves.id), str(gone)]}).content.decode()
    assert page.count("<hx-partial") == 4
    assert f'hx-target="#letter-{gone}" hx-swap="delete"' in page
    assert f'<tr id="letter-{leaves.id}" data-id="{leaves.id}" class="left">' in page
    assert f'<tr id="letter-{stays.id}" data-id="{stays.id}">' in page


def test_new_letters_are_counted_and_wait() -> None:
    top = deaths.letter()
    for _ in range(2):
        deaths.letter()
    deaths.letter(of=deaths.kind("refund"))
    client = signed_in()
    page = client.get(f"/dead-letters/rows/?kind=ticket.triage&fresh=1&top={top.id}").content.decode()
    assert ">2 new</a>" in page
    further_back = client.get(f"/dead-letters/rows/?kind=ticket.triage&top={top.id}").content.decode()
    assert "new</a>" not in further_back


def test_htmx_gets_the_part_below_the_filters() -> None:
    deaths.letter()
    response = signed_in().get(
        "/dead-letters/?kind=ticket.triage&q=", headers={"HX-Request": "true", "HX-Request-Type": "partial"}
    )
    page = response.content.decode()
    assert page.strip().startswith('<div id="letter-list">')
    assert response["HX-Push-Url"] == "/dead-letters/?kind=ticket.triage"
    assert "HX-Request" in response["Vary"]


@pytest.mark.django_db(transaction=True)
def test_a_search_that_takes_too_long_ends_in_a_sentence(second_connection: psycopg.Connection) -> None:
    client = signed_in()
    with second_connection.transaction():
        second_connection.execute("LOCK TABLE deadletters_deadletter")
        response = client.get("/dead-letters/?q=fire", headers={"HX-Request": "true", "HX-Request-Type": "partial"})
    assert response.status_code == 200
    assert "This search took too long and was stopped" in response.content.decode()


def test_who_may_only_look_has_nothing_to_tick() -> None:
    deaths.letter()
    page = signed_in(people.viewer()).get("/dead-letters/").content.decode()
    assert "the model is on fire" in page
    assert 'class="tick"' not in page
    assert 'id="bulk"' not in page


@pytest.mark.parametrize("path", ["/dead-letters/", "/dead-letters/rows/"])
def test_nobody_looks_without_permission(path: str) -> None:
    assert Client().get(path).status_code == 302
    assert signed_in(people.person("nora")).get(path).status_code == 403
    assert signed_in().post(path).status_code == 405


def test_personal_data_is_masked() -> None:
    deaths.submit()
    deaths.run(failed=deaths.failed(title="quota of jane.doe@example.com used up"))
    page = signed_in().get("/dead-letters/").content.decode()
    assert "jane.doe@example.com" not in page
    assert "quota of " in page


def test_letters_of_a_moment_are_found_by_time() -> None:
    letter = deaths.letter()
    moment = timezone.now() + timedelta(seconds=1)
    assert list(DeadLetter.objects.died_until(moment)) == [letter]
    assert not DeadLetter.objects.died_from(moment).exists()
