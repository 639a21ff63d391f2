"""The lease of a process and the contact of a cluster: one statement each, by the database's clock."""

from __future__ import annotations

import os
import socket
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from pytest_django import Settings

from tasks.engine import lease
from tasks.models import ClusterContact, WorkerProcess

pytestmark = pytest.mark.django_db(transaction=True)

CLUSTER = "host-a/redrive/1f2e3d4c"


@pytest.fixture
def worker_id(settings: Settings) -> int:
    settings.REDRIVE_LEASE_SECONDS = 12.0
    return lease.register("worker", CLUSTER, 50, ["b.two", "a.one"])


def lease_left(worker_id: int) -> float:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM lease_until - now()) FROM tasks_workerprocess WHERE id = %s", [worker_id]
        )
        return float(cursor.fetchone()[0])


def age(worker_id: int, seconds: float) -> None:
    """Move the row's lease into the past."""
    WorkerProcess.objects.filter(id=worker_id).update(lease_until=F("lease_until") - timedelta(seconds=seconds))


def test_register_says_who_and_what(worker_id: int) -> None:
    row = WorkerProcess.objects.get(id=worker_id)
    assert (row.role, row.cluster, row.slots, row.running) == ("worker", CLUSTER, 50, 0)
    assert (row.host, row.pid) == (socket.gethostname(), os.getpid())
    assert row.handlers == ["a.one", "b.two"]
    assert row.stopped_at is row.lost_at is row.exit_seen_at is row.exit_code is None
    assert 11 < lease_left(worker_id) <= 12


def test_each_registration_is_a_new_identity(worker_id: int) -> None:
    assert lease.register("worker", CLUSTER, 50, []) > worker_id


def test_beat_renews_and_counts(worker_id: int) -> None:
    age(worker_id, 11)
    assert lease.beat(worker_id, 7)
    assert 11 < lease_left(worker_id) <= 12
    assert WorkerProcess.objects.get(id=worker_id).running == 7


def test_a_late_beat_keeps_a_lease_that_nobody_took(worker_id: int) -> None:
    """After an outage longer than the lease, whoever still runs keeps what it runs."""
    age(worker_id, 100)
    assert lease.beat(worker_id, 1)
    assert lease_left(worker_id) > 11


@pytest.mark.parametrize("column", ["lost_at", "stopped_at"])
def test_beat_refuses_a_lost_or_stopped_process(worker_id: int, column: str) -> None:
    WorkerProcess.objects.filter(id=worker_id).update(**{column: Now()})
    age(worker_id, 5)
    assert not lease.beat(worker_id, 3)
    assert lease_left(worker_id) < 8
    assert WorkerProcess.objects.get(id=worker_id).running == 0


def test_a_beat_during_the_rescue_waits_and_is_refused(
    worker_id: int, second_connection: psycopg.Connection[tuple[object, ...]]
) -> None:
    """Rescue marks the row first: a beat that comes meanwhile waits for its commit, and then sees the mark."""
    second_connection.autocommit = False
    second_connection.execute("UPDATE tasks_workerprocess SET lost_at = now() WHERE id = %s", [worker_id])
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '100ms'")
    try:
        with pytest.raises(Exception, match="lock timeout"):
            lease.beat(worker_id, 1)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
    second_connection.commit()
    assert not lease.beat(worker_id, 1)


def test_stop_is_the_last_word(worker_id: int) -> None:
    lease.beat(worker_id, 4)
    assert lease.stop(worker_id)
    row = WorkerProcess.objects.get(id=worker_id)
    assert row.stopped_at is not None
    assert row.running == 0
    assert not lease.stop(worker_id)
    assert not lease.beat(worker_id, 0)


def test_stop_after_the_lease_was_lost(worker_id: int) -> None:
    WorkerProcess.objects.filter(id=worker_id).update(lost_at=Now())
    assert not lease.stop(worker_id)
    assert WorkerProcess.objects.get(id=worker_id).stopped_at is None


def test_record_exit_marks_the_live_row_once(worker_id: int) -> None:
    assert lease.record_exit(CLUSTER, os.getpid(), -9) == 1
    row = WorkerProcess.objects.get(id=worker_id)
    assert row.exit_code == -9
    assert row.exit_seen_at is not None
    assert lease.record_exit(CLUSTER, os.getpid(), 1) == 0
    assert WorkerProcess.objects.get(id=worker_id).exit_code == -9


def test_record_exit_leaves_other_clusters_and_earlier_identities(worker_id: int) -> None:
    """Process ids are used again, on other machines at once and on this one some day."""
    WorkerProcess.objects.filter(id=worker_id).update(lost_at=Now())
    other = lease.register("worker", "host-b/redrive/99999999", 50, [])
    assert lease.record_exit(CLUSTER, os.getpid(), -9) == 0
    assert not WorkerProcess.objects.filter(id__in=[worker_id, other], exit_seen_at__isnull=False).exists()


def test_contact_grows_from_nothing() -> None:
    assert lease.touch_contact("host-a/redrive", 3.0) == 0
    ClusterContact.objects.update(contact_since=F("contact_since") - timedelta(seconds=30))
    assert 30 <= lease.touch_contact("host-a/redrive", 3.0) < 33


@pytest.mark.parametrize(("gap", "kept"), [(5.5, True), (6.5, False), (3_600.0, False), (-5.5, True), (-60.0, False)])
def test_contact_is_kept_over_a_gap_of_less_than_two_beats(gap: float, kept: bool) -> None:
    """Negative: the clock was set back, so that nobody knows how long the gap was."""
    lease.touch_contact("host-a/redrive", 3.0)
    ClusterContact.objects.update(
        contact_at=F("contact_at") - timedelta(seconds=gap), contact_since=F("contact_since") - timedelta(seconds=100)
    )
    seconds = lease.touch_contact("host-a/redrive", 3.0)
    assert seconds >= 100 if kept else seconds == 0


def test_a_successor_continues_the_contact_and_others_have_their_own() -> None:
    first, second = (lease.cluster_name("redrive", run) for run in ("aaaaaaaa", "bbbbbbbb"))
    assert first != second
    assert lease.contact_name(first) == lease.contact_name(second) == f"{socket.gethostname()}/redrive"
    lease.touch_contact(lease.contact_name(first), 3.0)
    ClusterContact.objects.update(contact_since=F("contact_since") - timedelta(seconds=20))
    assert lease.touch_contact(lease.contact_name(second), 3.0) >= 20
    assert lease.touch_contact("host-b/redrive", 3.0) == 0
