"""Through PgBouncer in transaction mode: all parts work, and workers are woken past it, or by their own look."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from pytest_django.fixtures import Settings

from tasks.engine import wakeup
from tasks.lifecycle.announce import CHANNEL
from tasks.models import Attempt, Kind, Provider, Task
from tests.chat import chat, error
from tests.cluster import ROOT, QCluster, wait_until
from tests.pgbouncer import POOL_SIZE, PROGRAM, PgBouncer
from tests.provider import ScriptedProvider
from tests.site import serve
from tests.tasks.api.keys import make_key
from tests.tasks.lifecycle import world

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(PROGRAM is None, reason="no PgBouncer is installed (apt-get install pgbouncer)"),
]
WORKSHOP = "tests.tasks.engine.workshop"
POOLED = {"REDRIVE_PGBOUNCER": "on"}


@pytest.fixture(scope="module")
def bouncer(test_database_url: str) -> Iterator[PgBouncer]:
    """One for all tests here."""
    with PgBouncer(test_database_url) as running:
        yield running


def manage(bouncer: PgBouncer, *words: str, given: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
    """A management command through PgBouncer."""
    environment = {**os.environ, "DATABASE_URL": bouncer.url, "SECRET_KEY": "only-for-tests", **POOLED, **settings}
    command = [sys.executable, "-W", "ignore", "manage.py", *words]
    return subprocess.run(
        command, cwd=ROOT, env=environment, input=given, capture_output=True, text=True, timeout=120, check=False
    )


def sessions(connection: psycopg.Connection[Any], query: str = "%") -> int:
    """Sessions of the test database but ours whose last statement is like this."""
    statement = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE %s"
        " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    row = connection.execute(statement, [query]).fetchone()
    assert row
    return int(row[0])


def test_two_hundred_tasks_end_well(bouncer: PgBouncer, second_connection: psycopg.Connection[Any]) -> None:
    """Handlers and prompts, with limits, retries and progress, over fewer sessions than the workers have connections.

    Nobody listens anywhere: the workers find all of it by their own look.
    """
    with (
        ScriptedProvider() as provider,
        QCluster(bouncer.url, REDRIVE_APPS=WORKSHOP, REDRIVE_SLOTS=20, **POOLED) as cluster,
    ):
        provider.script(lambda request, n: error(500, "busy") if n <= 5 else chat(request, "sorted"))
        world.prompt_kind(
            provider=Provider.objects.create(name="p", base_url=provider.base_url, max_concurrency=15), max_attempts=5
        )
        Kind.objects.create(name="saw", handler="workshop.saw", concurrency_limit=9)
        cluster.wait_ready()
        for kind, payload in (("saw", {"length": 5}), ("ticket.triage", {"text": "late"})):
            lines = "".join(f"{json.dumps(payload)}\n" for _ in range(100))
            submitted = manage(bouncer, "submit", kind, "--input", "-", given=lines)
            assert len(submitted.stdout.split()) == 100, submitted.stderr
        wait_until(lambda: Task.objects.filter(status="succeeded").count() == 200, "200 tasks done", 60)
        (pool,) = [row for row in bouncer.ask("SHOW POOLS") if row[0] != "pgbouncer"]
        assert sum(pool[2:4]) > POOL_SIZE, "clients"
        assert sessions(second_connection, "LISTEN%") == 0
        cluster.terminate()
        assert cluster.wait() == 0
    assert Attempt.objects.filter(outcome="failed").count() == 5
    assert Attempt.objects.filter(outcome="succeeded").count() == 200
    assert not Attempt.objects.exclude(outcome__in=("failed", "succeeded")).exists()


def test_the_workers_listen_past_it(
    bouncer: PgBouncer, test_database_url: str, second_connection: psycopg.Connection[Any]
) -> None:
    """And what is submitted through it sends the notice."""
    Kind.objects.create(name="saw", handler="workshop.saw")
    second_connection.execute(f"LISTEN {CHANNEL}")
    with QCluster(bouncer.url, REDRIVE_APPS=WORKSHOP, REDRIVE_LISTEN_URL=test_database_url, **POOLED) as cluster:
        cluster.wait_ready()
        wait_until(lambda: sessions(second_connection, "LISTEN%") == 2, "each worker listening")
        settings = {"REDRIVE_LISTEN_URL": test_database_url}
        submitted = manage(bouncer, "submit", "saw", "--payload", '{"length": 5}', **settings)
        assert submitted.returncode == 0, submitted.stderr
        assert [notice.channel for notice in second_connection.notifies(timeout=10, stop_after=1)] == [CHANNEL]
        wait_until(lambda: Task.objects.get().status == "succeeded", "the sawing")
    assert len(bouncer.ask("SHOW CLIENTS")) >= 1


def test_a_notice_sent_through_it_wakes_who_listens_past_it(
    bouncer: PgBouncer, test_database_url: str, settings: Settings
) -> None:
    settings.REDRIVE_LISTENER = psycopg.conninfo.conninfo_to_dict(test_database_url)

    async def woken() -> None:
        wakes: asyncio.Queue[float] = asyncio.Queue()
        listening = asyncio.create_task(wakeup.listen(lambda: wakes.put_nowait(time.monotonic())))
        await asyncio.wait_for(wakes.get(), 10)  # it is connected
        await asyncio.to_thread(notify)
        await asyncio.wait_for(wakes.get(), 10)
        listening.cancel()

    def notify() -> None:
        with psycopg.connect(bouncer.url, autocommit=True) as connection:
            connection.execute(f"NOTIFY {CHANNEL}")

    asyncio.run(woken())


def test_without_a_way_around_it_nobody_is_told(bouncer: PgBouncer, second_connection: psycopg.Connection[Any]) -> None:
    """A NOTIFY that nobody hears would only cost a lock; the workers look once a second."""
    Kind.objects.create(name="saw", handler="workshop.saw")
    second_connection.execute(f"LISTEN {CHANNEL}")
    with QCluster(bouncer.url, REDRIVE_APPS=WORKSHOP, REDRIVE_WORKERS=1, **POOLED) as cluster:
        cluster.wait_ready()
        manage(bouncer, "submit", "saw", "--payload", '{"length": 5}')
        wait_until(lambda: Task.objects.get().status == "succeeded", "the sawing")
    assert list(second_connection.notifies(timeout=0)) == []


def test_the_web_process_works_through_it(bouncer: PgBouncer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pool too: pages, and the API with its stream of events."""
    monkeypatch.setenv("REDRIVE_PGBOUNCER", "on")
    world.prompt_kind()
    headers = {"Authorization": f"Bearer {make_key()}"}
    with serve(bouncer.url) as (site, _process), httpx2.Client(base_url=site, headers=headers, timeout=30) as client:
        for n in range(30):
            taken = client.post("/api/v1/tasks", json={"kind": "ticket.triage", "payload": {"text": f"ticket {n}"}})
            assert taken.status_code == 202
        assert client.get(taken.json()["status_url"]).json()["status"] == "ready"
        with client.stream("GET", taken.json()["events_url"]) as events:
            assert (events.status_code, next(events.iter_lines())) == (200, "id: 1")
        for path in ("/readyz", "/login/", "/metrics"):
            assert client.get(path).status_code == 200
    assert Task.objects.count() == 30


def test_missing_limits_of_the_session_are_warned_of(
    bouncer: PgBouncer, second_connection: psycopg.Connection[Any]
) -> None:
    """They cannot be sent along, so the role must have them; on a direct connection they are sent."""
    role = psycopg.sql.Identifier(second_connection.info.user)
    warned = manage(bouncer, "check", "--database", "default")
    assert "no statement_timeout" in warned.stderr
    assert "no lock_timeout" in warned.stderr
    assert "ALTER ROLE" in warned.stderr
    limits = {"statement_timeout": "30s", "lock_timeout": "20s", "idle_in_transaction_session_timeout": "60s"}
    try:
        for name, value in limits.items():
            setting = psycopg.sql.SQL("ALTER ROLE {} SET {} = {}").format(role, psycopg.sql.Identifier(name), value)
            second_connection.execute(setting)
        bouncer.ask("RECONNECT")
        content = wait_until(lambda: _without_limits(bouncer), "new sessions")
        assert "no issues" in content
    finally:
        for name in limits:
            reset = psycopg.sql.SQL("ALTER ROLE {} RESET {}").format(role, psycopg.sql.Identifier(name))
            second_connection.execute(reset)


def _without_limits(bouncer: PgBouncer) -> str:
    """What the check says, once it warns no more."""
    told = manage(bouncer, "check", "--database", "default")
    return "" if "W008" in told.stderr else told.stdout


def test_a_forgotten_setting_is_told(bouncer: PgBouncer, tmp_path: Path) -> None:
    """Start-up options are refused by PgBouncer; the sentence says what to set."""
    log = tmp_path / "log"
    with QCluster(bouncer.url, log=log):
        wait_until(lambda: "Set REDRIVE_PGBOUNCER=on." in log.read_text(), "the hint")
