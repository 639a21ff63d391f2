"""Durations, times and status words."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.template import Context, Template
from django.utils import timezone

from tasks.models.ids import uuid7
from tasks.states import LetterState, Outcome, Reason, Status
from tasks.templatetags import console
from tasks.words import TONES, WORDS, ago_text, clock, span


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (-3, "0.0 s"),
        (0.04, "0.0 s"),
        (0.44, "0.4 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (185, "3 min 5 s"),
        (660.2, "11 min"),
        (3599.7, "1 h"),
        (7800, "2 h 10 min"),
        (86_400, "1 d"),
        (356_400, "4 d 3 h"),
    ],
)
def test_durations(seconds: float | None, shown: str) -> None:
    """The two largest useful parts."""
    assert span(seconds) == shown


@pytest.mark.parametrize("value", [*Status, *Outcome, *LetterState])
def test_every_status_has_a_word_a_colour_and_an_icon(value: str) -> None:
    """Status is never told by colour alone."""
    assert value in WORDS and value in TONES
    shown = console.badge(value)
    assert "<svg" in shown and str(WORDS[value]) in shown


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_word(reason: Reason) -> None:
    """No underscores for people."""
    assert "_" not in str(WORDS[reason])


def test_distances() -> None:
    """Past, future, now."""
    now = timezone.now()
    assert ago_text(now - timedelta(minutes=5, milliseconds=200)) == "5 min ago"
    assert ago_text(now + timedelta(seconds=14.4)) == "in 14 s"
    assert ago_text(now) == "now"


def test_a_clock_names_the_date_unless_it_is_today() -> None:
    """In the operator's zone."""
    with timezone.override("Asia/Taipei"):
        today = timezone.localtime().replace(hour=14, minute=3, second=20, microsecond=0)
        assert clock(today) == "14:03:20"
        assert clock(datetime.fromisoformat("2026-01-31T20:05:00+00:00")) == "1 Feb 2026 04:05"


@pytest.mark.parametrize("zone", ["Asia/Taipei", "America/Los_Angeles"])
@pytest.mark.parametrize("text", ["9999-12-31T23:59:59.999999+00:00", "0001-01-01T00:00:00+00:00"])
def test_the_ends_of_the_calendar_are_shown(text: str, zone: str) -> None:
    """In UTC where the operator's zone would lie beyond them."""
    when = datetime.fromisoformat(text)
    with timezone.override(zone):
        shown = [console.moment(when), console.ago(when), console.due(when)]
    assert all("<time" in one for one in shown)


def test_a_time_is_absolute_on_hover() -> None:
    """``datetime`` for machines, ``title`` for people."""
    when = datetime.fromisoformat("2026-01-31T20:05:06+00:00")
    with timezone.override("Asia/Taipei"):
        shown = console.ago(when)
    assert 'datetime="2026-01-31T20:05:06+00:00"' in shown
    assert 'title="2026-02-01 04:05:06 CST"' in shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(None, "–"), ("0", "–"), ("0.0112", "$0.0112"), ("0.00000400", "<$0.0001"), ("1234.5", "$1,234.50")],
)
def test_money(amount: str | None, shown: str) -> None:
    """Enough digits for small sums."""
    assert console.money(None if amount is None else Decimal(amount)) == shown


def test_counts_stop_at_their_cap() -> None:
    """“10,000+” means: at least one more was seen."""
    assert (console.capped(10_000), console.capped(10_001), console.capped(7)) == ("10,000", "10,000+", "7")


def test_large_numbers_have_their_thousands_apart() -> None:
    """Nothing for nothing."""
    assert (console.grouped(12_345_678), console.grouped(0), console.grouped(None)) == ("12,345,678", "0", "")


def test_our_own_faults_are_not_named_twice() -> None:
    """The error's text begins with their name; a library's class stands beside it with its module."""
    assert console.foreign("openai.APIError") == "openai.APIError"
    assert console.foreign("tasks.errors.faults.AnswerEmpty") == console.foreign(None) == ""


def test_an_id_is_short_by_its_end_and_copies_whole() -> None:
    """Ids of one minute begin alike."""
    value = str(uuid7())
    shown = Template("{% load console %}{% copy_id value %}").render(Context({"value": value}))
    assert f">{value[-8:]}<" in shown and f'data-copy="{value}"' in shown


def test_values_are_masked_and_escaped() -> None:
    """Secrets and markup of strangers."""
    template = Template("{% load console %}{{ value|masked }}")
    shown = template.render(Context({"value": {"text": "<b>key</b> sk-abcdefghijklmnopqrstuvwxyz012345"}}))
    assert "sk-abcdefghij" not in shown
    assert "&lt;b&gt;" in shown and "<b>" not in shown
