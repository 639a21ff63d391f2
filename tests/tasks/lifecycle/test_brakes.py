"""A provider's rest, whatever it named: a date that every reader can show."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from tasks import lifecycle
from tasks.lifecycle.brakes import cool_providers
from tasks.models import Provider
from tests.tasks.lifecycle import world

DAY = timedelta(days=1)


def rest() -> timedelta:
    until = Provider.objects.get(name="p").cooling_until
    assert until is not None
    return until - timezone.now()


@pytest.mark.django_db
@pytest.mark.parametrize("seconds", [86_401.0, 9e9, 3.5e11, 1e300])
def test_a_rest_is_a_day_at_most(seconds: float) -> None:
    world.provider()
    cool_providers({"p": (seconds, "AI_RATE_LIMITED")})
    assert DAY - timedelta(minutes=10) < rest() <= DAY


@pytest.mark.django_db
@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf])
def test_what_is_no_time_rests_nobody(seconds: float) -> None:
    world.provider()
    cool_providers({"p": (seconds, "AI_RATE_LIMITED")})
    assert Provider.objects.get(name="p").cooling_until is None


@pytest.mark.django_db
def test_a_rest_beyond_every_readers_calendar_is_mended_by_the_next() -> None:
    world.provider()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tasks_provider SET cooling_until = '13061-01-01'")
    cool_providers({"p": (60.0, "AI_RATE_LIMITED")})
    assert rest() <= timedelta(seconds=60)


@pytest.mark.django_db
def test_a_rest_is_never_made_shorter_by_another() -> None:
    world.provider()
    cool_providers({"p": (3_600.0, "AI_RATE_LIMITED")})
    cool_providers({"p": (1.0, "AI_RATE_LIMITED")})
    assert rest() > timedelta(minutes=30)


@pytest.mark.django_db
@pytest.mark.parametrize("action", ["retry", "snooze"])
def test_a_task_comes_back_within_a_year(action: str) -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    saved = lifecycle.finish(worker, [world.failed(row, action, delay_seconds=1e300, provider="p", cool_seconds=1e300)])
    assert saved.won == {row.attempt_id}
    assert timezone.now() < world.stored(row.task_id).run_after < timezone.now() + 366 * DAY
    assert rest() <= DAY
