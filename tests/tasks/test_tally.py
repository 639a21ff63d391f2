"""The maintained counts: always what counting would say, however tasks move and whoever folds."""

from __future__ import annotations

import re
import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.db.models import Count
from django.db.models.functions import Now
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks import lifecycle, tally
from tasks.models import Attempt, TallyDelta, Task
from tests.deadletters import deaths
from tests.sources import ROOT


def counted() -> dict[tuple[str, str], int]:
    """Tasks by kind and status, counted."""
    rows = Task.objects.values_list("kind", "status").annotate(n=Count("pk")).order_by()
    return {(kind, status): n for kind, status, n in rows}


def kept(metric: str = "tasks") -> dict[tuple[str, str], float]:
    """The same as it is kept; a count that came back to nothing is none."""
    return {(kind, label): value for _, kind, label, value in tally.read([metric]) if value}


@pytest.mark.django_db
def test_every_move_is_counted() -> None:
    for _number in range(3):
        deaths.submit()
    deaths.run()
    deaths.succeed()
    assert kept() == counted() == {("ticket.triage", status): 1 for status in ("dead", "succeeded", "ready")}
    dead = Task.objects.get(status="dead")
    lifecycle.reprocess([dead.pk], actor="ana")
    assert kept() == counted()
    assert kept("submitted") == {("ticket.triage", ""): 3}
    assert kept("ended") == {("ticket.triage", "dead AI_PROVIDER_ERROR"): 1, ("ticket.triage", "succeeded"): 1}
    assert kept("attempts") == {("ticket.triage", "failed AI_PROVIDER_ERROR"): 1, ("ticket.triage", "succeeded"): 1}


@pytest.mark.django_db
def test_a_delete_is_counted() -> None:
    task = deaths.submit()
    Task.objects.filter(pk=task.pk).delete()
    assert kept() == {}
    assert kept("submitted") == {("ticket.triage", ""): 1}


@pytest.mark.django_db
def test_an_update_that_moves_nothing_appends_nothing() -> None:
    deaths.submit()
    before = TallyDelta.objects.count()
    Task.objects.update(progress={"step": 1})
    assert TallyDelta.objects.count() == before


@pytest.mark.django_db
def test_a_batch_appends_a_few_rows() -> None:
    """Not one for each task."""
    deaths.kind()
    lifecycle.submit_many("ticket.triage", [{"n": n} for n in range(300)])
    assert TallyDelta.objects.count() <= 4


@pytest.mark.django_db
def test_durations_fall_into_their_buckets() -> None:
    deaths.submit()
    holder, (claimed,) = deaths.claim()
    Attempt.objects.filter(pk=claimed.attempt_id).update(started_at=ago(8))
    lifecycle.finish(holder.pk, [deaths.end(claimed, deaths.Outcome.SUCCEEDED, result_text='"x"')])
    assert kept("attempt_bucket") == {("ticket.triage", str(tally.BUCKETS.index(10.0))): 1}
    ((_, seconds),) = kept("attempt_seconds").items()
    assert 5 <= seconds <= 8


def ago(seconds: float) -> Any:
    """A time before the transaction's own."""
    return Now() - timedelta(seconds=seconds)


def test_the_triggers_have_the_same_buckets() -> None:
    sql = (ROOT / "tasks/migrations/0004_tally_triggers.py").read_text("utf-8")
    (text,) = re.findall(r"ARRAY\[([\d., ]+)\]", sql)
    assert tuple(float(bound) for bound in text.split(",")) == tally.BUCKETS


@pytest.mark.django_db
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["submit", "die", "succeed", "cancel", "reprocess", "fold"]), max_size=25))
def test_any_history(steps: list[str]) -> None:
    with transaction.atomic():
        for step in steps:
            _take(step)
        assert kept() == counted()
        transaction.set_rollback(True)


def _take(step: str) -> None:
    ready, dead = Task.objects.filter(status="ready").first(), Task.objects.filter(status="dead").first()
    if step == "submit":
        deaths.submit()
    elif step == "fold":
        tally.fold()
    elif step == "reprocess" and dead:
        lifecycle.reprocess([dead.pk], actor="ana")
    elif ready and step == "cancel":
        lifecycle.cancel([ready.pk], actor="ana")
    elif ready and step == "die":
        deaths.run()
    elif ready and step == "succeed":
        deaths.succeed()


@pytest.mark.django_db
def test_folding_changes_no_count() -> None:
    for _number in range(5):
        deaths.submit()
    before = kept()
    assert tally.fold() == 10
    assert tally.fold() == 0
    assert not TallyDelta.objects.exists()
    deaths.submit()
    assert kept() == {key: value + 1 for key, value in before.items()}


@pytest.mark.django_db(transaction=True)
def test_folders_and_movers_at_once(second_connection: psycopg.Connection) -> None:
    """While one transaction folds, another process's fold does nothing, and moves go on and are counted."""
    deaths.submit()
    done = Counter[str]()

    def fold_elsewhere() -> None:
        done["folded"] = tally.fold()
        connection.close()

    with second_connection.transaction():
        second_connection.execute("SELECT pg_advisory_xact_lock(%s)", [tally.LOCK])
        other = threading.Thread(target=fold_elsewhere)
        other.start()
        other.join()
        assert done["folded"] == 0
        deaths.submit()
    assert tally.fold() == 4
    assert kept() == counted() == {("ticket.triage", "ready"): 2}
