"""The filter: URL → queryset → URL."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.http import QueryDict
from django.utils import timezone

from tasks.filters import TaskFilter
from tasks.models import Task
from tasks.states import Outcome, Status
from tests.factories import make_attempt, make_kind, make_provider, make_task

pytestmark = pytest.mark.django_db


def wanted(query: str) -> TaskFilter:
    """The filter of a query string."""
    return TaskFilter(QueryDict(query))


def found(query: str) -> set[Task]:
    """The tasks that pass."""
    return set(wanted(query).narrow(Task.objects.all()))


@pytest.fixture
def other() -> Task:
    """A task that none of the filters below lets through."""
    return make_task(Status.SUCCEEDED, kind=make_kind("other.kind", handler="other"), subject="Nothing of interest")


CASES = {
    "status=ready": {},
    "kind=ticket.triage": {},
    "provider=acme": {},
    "session=s-1": {"session_id": "s-1"},
    "user=u-1": {"user_id": "u-1"},
    "trace=t-1": {"trace_id": "t-1"},
    "tag=vip": {"tags": ["eu", "vip"]},
    "priority=7": {"priority": 7},
    "priority=-100": {"priority": -100},
    "q=inVOICE": {"subject": "Wrong invoice"},
    "code=AI_TLS_FAILED": {"error_code": "AI_TLS_FAILED"},
}


@pytest.mark.parametrize("query", CASES)
def test_each_filter_narrows(other: Task, query: str) -> None:
    """To the one task that has it."""
    task = make_task(**CASES[query])
    assert found(query) == {task}


def test_filters_narrow_together(other: Task) -> None:
    """All must hold; several statuses are any of them."""
    one = make_task(priority=7, tags=["vip"])
    make_task(priority=7)
    two = make_task(Status.DEAD, priority=7, tags=["vip"])
    assert found("priority=7&tag=vip&status=ready") == {one}
    assert found("priority=7&tag=vip&status=ready&status=dead") == {one, two}


def test_text_is_found_in_an_attempts_error(other: Task) -> None:
    """Not only in the last one's."""
    task = make_task(Status.RETRYABLE)
    make_attempt(task, Outcome.FAILED, last_error="connection reset by peer")
    assert found("q=RESET+by") == {task}


def test_an_id_is_found(other: Task) -> None:
    """Pasted into the search field."""
    assert found(f"q={other.pk}") == {other}


def test_time_cuts_on_both_sides() -> None:
    """``since`` and ``until`` by age."""
    old, middle, new = make_task(ago=7200), make_task(ago=1800), make_task(ago=1)
    assert found("since=1h") == {middle, new}
    assert found("until=1h") == {old}
    assert found("since=1h&until=15m") == {middle}


def test_a_day_ends_at_its_end() -> None:
    """``until`` a date holds the whole of it, in the operator's zone."""
    task = make_task(ago=5)
    with timezone.override("Asia/Taipei"):
        today = timezone.localtime().date()
        assert found(f"since={today}&until={today}") <= {task}
        assert found(f"until={today}") == {task}
        assert found(f"until={today - timedelta(days=2)}") == set()


def test_a_time_is_read_in_the_operators_zone() -> None:
    """Not in UTC."""
    make_task(ago=60)
    with timezone.override("Asia/Taipei"):
        before = timezone.localtime() - timedelta(minutes=10)
        assert len(found(f"since={before:%Y-%m-%d %H:%M}")) == 1
        assert found(f"until={before:%Y-%m-%d %H:%M}") == set()


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("since=yesterday-ish", "Since: “yesterday-ish” is no time. Write 15m, 24h, 7d or 2026-01-31 14:00."),
        ("until=2026-02-31", "Until: “2026-02-31” is no time. Write 15m, 24h, 7d or 2026-01-31 14:00."),
        ("priority=high", "Priority: Enter a whole number."),
        ("priority=101", "Priority: Ensure this value is less than or equal to 100."),
        ("status=asleep", "Status: Select a valid choice. asleep is not one of the available choices."),
    ],
)
def test_a_value_that_is_not_understood_says_so_and_shows_nothing(query: str, sentence: str) -> None:
    """A wider list than the one asked for would invite an action on the wrong rows."""
    make_task()
    assert [str(fault) for fault in wanted(query).faults] == [sentence]
    assert found(query) == set()


@pytest.mark.parametrize(
    "query", ["q=%00", "kind=%00", "since=%00", "tag=" + "x" * 101, "session=%00", "q=" + "x" * 301]
)
def test_a_value_that_the_database_could_not_take_is_a_fault(query: str) -> None:
    """Never an error 500."""
    assert wanted(query).faults
    assert found(query) == set()


def test_a_value_that_is_not_listed_is_taken() -> None:
    """A code that left the catalogue, a kind that no longer exists: exact, and kept in the form."""
    form = wanted("code=AI_GONE")
    assert form.faults == []
    assert '<option value="AI_GONE" selected>' in str(form["code"])


def test_the_filter_writes_its_own_url() -> None:
    """Parameters → filter → the same parameters, without blanks and strangers."""
    form = wanted("q=&kind=a.b&status=dead&status=ready&page=9&tag=x+y")
    assert form.query == "?status=dead&status=ready&kind=a.b&tag=x+y"
    assert wanted(form.query[1:]).query == form.query
    assert wanted("q=&kind=").query == ""


def test_chips_take_one_filter_away_each() -> None:
    """With words people read."""
    form = wanted("status=dead&status=ready&kind=a.b")
    assert [(chip.label, chip.value, chip.without) for chip in form.chips] == [
        ("Status", "dead", "?status=ready&kind=a.b"),
        ("Status", "ready", "?status=dead&kind=a.b"),
        ("Kind", "a.b", "?status=dead&status=ready"),
    ]
    assert wanted("kind=a.b").chips[0].without == ""


def test_more_filters_are_open_when_one_is_set() -> None:
    """So that nothing narrows unseen."""
    assert wanted("session=s-1").more_is_open
    assert not wanted("kind=a.b").more_is_open


def test_suggestions_come_from_the_tables() -> None:
    """Kinds, providers and codes that exist."""
    make_kind("customer.summary", provider=make_provider("openai"))
    form = wanted("")
    assert '<option value="customer.summary">' in str(form["kind"])
    assert '<option value="openai">' in str(form["provider"])
    assert '<option value="AI_RATE_LIMITED">' in str(form["code"])


def test_a_tag_is_found_by_the_index_that_holds_only_tagged_tasks() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
    assert "task_by_tag" in wanted("tag=vip").narrow(Task.objects.order_by()).explain()
