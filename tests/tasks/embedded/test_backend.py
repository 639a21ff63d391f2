"""The Django backend follows the data directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import OperationalError, connection
from psycopg import Connection
from pytest_django import DjangoDbBlocker
from pytest_django.fixtures import Settings

from tasks.embedded import address
from tasks.embedded.backend.base import DatabaseClient, DatabaseWrapper
from tasks.embedded.server import EmbeddedServer
from tests.tasks.embedded.test_server import stranger_on

OPTIONS = {"connect_timeout": 10, "options": "-c statement_timeout=30s"}


@pytest.fixture
def wrapper(data_dir: Path, settings: Settings, django_db_blocker: DjangoDbBlocker) -> Iterator[DatabaseWrapper]:
    """Django's connection to the (not yet started) server of ``data_dir``."""
    settings.REDRIVE_DATA_DIR = data_dir
    own = {"ENGINE": "tasks.embedded.backend", "NAME": "redrive", "OPTIONS": dict(OPTIONS)}
    with django_db_blocker.unblock():
        wrapper = DatabaseWrapper({**connection.settings_dict, **own}, "own")
        yield wrapper
        wrapper.close()


def port_of(wrapper: DatabaseWrapper) -> int:
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT current_setting('port')::int")
        return int(cursor.fetchone()[0])


@pytest.mark.django_db
@pytest.mark.skipif(bool(os.environ.get("DATABASE_URL")), reason="the run has a server of its own")
def test_the_test_database_is_reached_as_redrive() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database(), current_user, current_setting('TimeZone')")
        assert cursor.fetchone() == ("test_redrive", "redrive", "UTC")


def test_a_second_connection_sees_what_is_committed(second_connection: Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_session VALUES ('key', 'data', now())")
    found = second_connection.execute("SELECT session_data FROM django_session").fetchone()
    assert found == ("data",)


def test_without_a_server_it_says_how_to_start_one(wrapper: DatabaseWrapper, data_dir: Path) -> None:
    with pytest.raises(OperationalError, match=r"manage\.py up.*DATABASE_URL.*REDRIVE_DATA_DIR") as caught:
        wrapper.ensure_connection()
    assert str(data_dir) in str(caught.value)


def test_a_stopped_server_says_how_to_start_one(wrapper: DatabaseWrapper, data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    server.stop()
    with pytest.raises(OperationalError, match=r"manage\.py up"):
        wrapper.ensure_connection()


def test_other_errors_keep_their_own_words(wrapper: DatabaseWrapper, data_dir: Path) -> None:
    EmbeddedServer(data_dir).start()
    wrapper.settings_dict["NAME"] = "elsewhere"
    with pytest.raises(OperationalError, match='database "elsewhere" does not exist'):
        wrapper.ensure_connection()


def test_an_unreadable_address_is_named(wrapper: DatabaseWrapper, data_dir: Path) -> None:
    """A folder in its place: what nobody can read, root included."""
    (data_dir / address.PORT_FILE).mkdir()
    with pytest.raises(OperationalError, match="cannot be read"):
        wrapper.ensure_connection()


@pytest.mark.parametrize("pool", [False, {"min_size": 1, "max_size": 2}])
def test_a_server_that_moved_is_followed(wrapper: DatabaseWrapper, data_dir: Path, pool: object) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    old = server.address().port
    wrapper.settings_dict["OPTIONS"]["pool"] = pool
    wrapper.settings_dict["CONN_MAX_AGE"] = 0
    assert port_of(wrapper) == old
    wrapper.close()
    server.stop()
    with stranger_on(old):
        server.start()
        wrapper.settings_dict["CONN_HEALTH_CHECKS"] = True
        assert port_of(wrapper) == server.address().port != old
        wrapper.close()
    wrapper.close_pool()


def test_the_default_database_is_asked_where_there_is_no_name(wrapper: DatabaseWrapper, data_dir: Path) -> None:
    EmbeddedServer(data_dir).start()
    with wrapper._nodb_cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == ("postgres",)


def test_dbshell_gets_the_address(wrapper: DatabaseWrapper, data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    where = server.address()
    words, environment = DatabaseClient.settings_to_cmd_args_env(wrapper.settings_dict, [])
    assert words == ["psql", "-U", "redrive", "-h", "127.0.0.1", "-p", str(where.port), "redrive"]
    assert environment == {"PGPASSWORD": where.password}
