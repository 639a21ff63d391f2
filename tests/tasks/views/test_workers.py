"""Worker processes."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_worker
from tests.tasks.views.doors import signed_in

pytestmark = pytest.mark.django_db


def row(page: str, pk: int) -> str:
    """A row's text, one space between its parts; empty where there is none."""
    found = re.search(rf'<tr id="worker-{pk}">.*?</tr>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split()) if found else ""


def read(part: str = "") -> str:
    """The page, or its live part."""
    return signed_in("vera", "view").get(f"/workers/{part}").content.decode()


def test_nobody_alive_says_what_to_do() -> None:
    """Start one."""
    page = read()
    assert "No worker process is alive" in page and "manage.py qcluster" in page


def test_the_living() -> None:
    """Slots in use in all and in each; who missed a beat."""
    live = make_worker(running=7, pid=4242)
    late = make_worker(lease=-2, running=1)
    caretaker = make_worker(role="caretaker", slots=0)
    page = read()
    assert "8 of 100 slots in use" in page
    assert row(page, live.pk).startswith("live worker-1:4242 test") and "7 / 50" in row(page, live.pk)
    assert row(page, late.pk).startswith("late beat")
    assert "caretaker" in row(page, caretaker.pk) and "/ 50" not in row(page, caretaker.pk)


def test_the_ended() -> None:
    """Stopped or lost in the last day, with exit code and late saves; older ones are history."""
    lost = make_worker(lost_at=timezone.now() - timedelta(hours=1), exit_code=-9, late_saves_refused=3)
    stopped = make_worker(stopped_at=timezone.now() - timedelta(hours=2))
    old = make_worker(stopped_at=timezone.now() - timedelta(days=2))
    page = read()
    assert row(page, lost.pk).startswith("lost") and row(page, lost.pk).endswith("-9 3")
    assert row(page, stopped.pk).startswith("stopped") and row(page, old.pk) == ""


def test_the_live_part_is_the_same_without_the_page() -> None:
    """What the poll morphs."""
    live = make_worker()
    part = read("live/")
    assert "<html" not in part and row(part, live.pk)
