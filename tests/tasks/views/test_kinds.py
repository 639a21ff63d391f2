"""Kinds and providers: their state in words, their backlog, their buttons."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tasks import lifecycle
from tasks.states import Status
from tasks.views import backlog
from tests.factories import make_kind, make_provider, make_task, make_worker
from tests.tasks.views.doors import signed_in

pytestmark = pytest.mark.django_db


def row(page: str, which: str) -> str:
    """A row's text, one space between its parts."""
    found = re.search(rf'<tr id="{re.escape(which)}">.*?</tr>', page, re.DOTALL)
    assert found
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


def read(part: str = "", group: str = "operate") -> str:
    """The page, or its live part."""
    return signed_in("ana", group).get(f"/kinds/{part}").content.decode()


def test_empty_states_say_what_to_do() -> None:
    """No kind, no provider."""
    page = read()
    assert "No kind yet" in page and "manage.py loadconfig FILE.toml" in page and "No provider yet" in page


def test_a_kind_tells_its_backlog_and_provider() -> None:
    """Ready, running, later."""
    make_worker()
    for status in (Status.READY, Status.READY, Status.RUNNING, Status.RETRYABLE, Status.SCHEDULED, Status.DEAD):
        make_task(status)
    page = read()
    assert row(page, "kind-ticket.triage").startswith("ticket.triage acme m-1 takes tasks 2 1 2 Pause…")
    assert row(page, "provider-acme").startswith("acme http://127.0.0.1:9/v1 takes calls 2 1 Hold…")


def test_a_kind_whose_provider_is_stopped_does_not_claim_to_take_tasks() -> None:
    """On hold, cooling; its own pause comes first."""
    make_worker()
    make_kind("held", provider=make_provider("h"), model="m", prompt="x")
    make_kind("cools", provider=make_provider("c", cooling_until=timezone.now() + timedelta(minutes=5)), model="m")
    make_kind("rested", provider=make_provider("r", cooling_until=timezone.now() - timedelta(minutes=5)), model="m")
    make_kind("both", provider=make_provider("h"), model="m", prompt="x")
    lifecycle.hold_provider("h", by="ana", reason="x")
    lifecycle.pause_kind("both", by="ana", reason="wrong language")
    page = read()
    assert "held Provider h is on hold." in row(page, "kind-held")
    assert "cooling Provider c is cooling." in row(page, "kind-cools")
    assert "takes tasks" in row(page, "kind-rested")
    assert "paused Paused by ana" in row(page, "kind-both")


def test_counts_stop_at_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """“3+”: not counted further."""
    monkeypatch.setattr(backlog, "CAP", 3)
    monkeypatch.setattr("tasks.views.kinds.CAP", 3)
    for _number in range(5):
        make_task()
    assert "3+" in row(read(), "kind-ticket.triage")


def test_paused_held_and_cooling_are_told_with_their_way_out() -> None:
    """Resume and Release instead of Pause and Hold."""
    make_worker()
    make_kind()
    cooling = timezone.now() + timedelta(seconds=20)
    make_provider("slow", cooling_until=cooling, cooling_reason="AI_RATE_LIMITED")
    lifecycle.pause_kind("ticket.triage", by="bea", reason="wrong language")
    lifecycle.hold_provider("acme", by="redrive", reason="bad key", code="AI_AUTH_FAILED")
    page = read()
    assert "paused Paused by bea" in row(page, "kind-ticket.triage") and "Resume" in row(page, "kind-ticket.triage")
    assert "held Put on hold by redrive" in row(page, "provider-acme") and "Release" in row(page, "provider-acme")
    assert "bad key (AI_AUTH_FAILED)." in row(page, "provider-acme")
    assert "cooling Cooling until" in row(page, "provider-slow") and "Release" in row(page, "provider-slow")


def test_a_provider_that_has_cooled_takes_calls() -> None:
    """The past is past."""
    make_provider("slow", cooling_until=timezone.now() - timedelta(seconds=1))
    assert "takes calls" in row(read(), "provider-slow")


def test_a_kind_that_nobody_runs_says_so() -> None:
    """It may be a worker that was forgotten."""
    make_kind("invoice.check", handler="invoices.check")
    assert "no worker No worker process is alive" in row(read(), "kind-invoice.check")


def test_a_simulated_provider_is_marked() -> None:
    """No money is spent there."""
    make_provider("demo", simulated=True)
    assert "simulated" in row(read(), "provider-demo")


def test_who_may_only_look_sees_the_buttons_disabled_with_the_reason() -> None:
    """Not hidden, and without a form behind them."""
    make_kind()
    page = read(group="view")
    assert page.count("You may look, not act. Ask for the group “operate”.") == 2
    assert 'action="/kinds/' not in page and 'action="/providers/' not in page


def test_the_live_part_is_the_same_without_the_page() -> None:
    """What the poll morphs."""
    make_kind()
    part = read("live/")
    assert "<html" not in part and 'id="kind-ticket.triage"' in part


def test_queries_do_not_grow_with_kinds_and_tasks() -> None:
    """One kind or twenty."""
    client = signed_in()

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get("/kinds/")
        return len(queries)

    make_task()
    few = cost()
    for number in range(20):
        make_task(kind=f"kind.{number}")
        make_provider(f"provider-{number}")
    assert cost() == few <= 20
