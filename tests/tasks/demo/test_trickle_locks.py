"""The trickle and a person at the same moment, on two real connections: whoever is second sees what the first did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from tasks.configuration.load import load
from tasks.demo.configure import configure
from tasks.demo.models import TrickledTask
from tasks.demo.trickle import submit_next
from tasks.models import Kind, Provider, Task
from tests.tasks.demo.asking import until

pytestmark = pytest.mark.django_db(transaction=True)

URL = "http://127.0.0.1:4100/fault/demo/v1"
REAL = "https://llm.example/v1"
Aside = Callable[[Callable[[], Any]], Future[Any]]


@pytest.fixture(autouse=True)
def demo(transactional_db: None) -> None:
    """The demo's rows, and a real provider."""
    configure(URL, {})
    Provider.objects.create(name="real", base_url=REAL)


@pytest.fixture
def aside() -> Iterator[Aside]:
    """Runs something on a connection of its own, in a thread that is done when the test is."""

    def run(work: Callable[[], Any]) -> Any:
        try:
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        yield lambda work: pool.submit(run, work)


def waits_for(connection: psycopg.Connection, done: Future[Any]) -> bool:
    """Whether somebody waits for a lock of that connection; it must not be done already."""
    assert not done.done(), f"it did not wait: {done.result()!r}"
    with psycopg.connect(connection.info.dsn, password=connection.info.password, autocommit=True) as asking:
        pid = connection.info.backend_pid
        query = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
        row = asking.execute(query, [pid]).fetchone()
    return row is not None and row[0] > 0


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tasks_provider SET simulated = false WHERE name = 'simulated'",
        "UPDATE tasks_kind SET provider_id = 'real' WHERE name = 'ticket.triage'",
        "UPDATE tasks_kind SET backup_provider_id = 'real' WHERE name = 'ticket.triage'",
        "UPDATE tasks_kind SET handler = 'mine' WHERE name = 'ticket.triage'",
    ],
)
def test_a_change_under_way_is_waited_for_and_seen(
    change: str, second_connection: psycopg.Connection, aside: Aside
) -> None:
    with second_connection.transaction():
        second_connection.execute(change)
        submitted = aside(lambda: submit_next(0))
        until(lambda: waits_for(second_connection, submitted))
    assert submitted.result(20) is None
    assert not Task.objects.exists()


def save_provider() -> None:
    """As the admin does it: locked, changed, saved."""
    with transaction.atomic():
        provider = Provider.objects.select_for_update(no_key=True).get(pk="simulated")
        provider.base_url, provider.simulated = REAL, False
        provider.save()


def save_kind() -> None:
    """As the admin does it: locked, changed, saved."""
    with transaction.atomic():
        kind = Kind.objects.select_for_update(no_key=True).get(pk="ticket.triage")
        kind.provider_id = "real"
        kind.save()


def load_file() -> None:
    """As loadconfig does it."""
    load(f'[[provider]]\nname = "simulated"\nbase_url = "{REAL}"\n')


@pytest.mark.parametrize("change", [save_provider, save_kind, load_file])
def test_a_change_that_comes_second_withdraws_what_the_first_submitted(
    change: Callable[[], None], aside: Aside
) -> None:
    with transaction.atomic():
        task = submit_next(0)
        changed = aside(change)
        until(lambda: waits_for(connection.connection, changed))
    changed.result(20)
    assert task is not None
    assert Task.objects.get(pk=task.pk).status == "cancelled"
    assert TrickledTask.objects.count() == 1


def test_a_file_locks_kinds_before_providers_as_the_trickle_does(
    second_connection: psycopg.Connection, aside: Aside
) -> None:
    text = (
        f'[[provider]]\nname = "simulated"\nbase_url = "{REAL}"\n'
        '[[kind]]\nname = "ticket.triage"\nprovider = "real"\nmodel = "m"\nprompt = "{{ text }}"\n'
    )
    with second_connection.transaction():
        second_connection.execute("SELECT 1 FROM tasks_kind WHERE name = 'ticket.triage' FOR NO KEY UPDATE")
        loaded = aside(lambda: load(text))
        until(lambda: waits_for(second_connection, loaded))
        second_connection.execute("SELECT 1 FROM tasks_provider WHERE name = 'simulated' FOR NO KEY UPDATE NOWAIT")
    assert loaded.result(20).changed
