"""Django's PostgreSQL backend, told at each connect where the embedded server listens."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base
from django.db.backends.postgresql.client import DatabaseClient as PostgresClient
from django.db.utils import OperationalError

from tasks.embedded import address
from tasks.embedded.address import Address
from tasks.embedded.errors import EmbeddedError
from tasks.embedded.probe import NO_TLS


def current_address() -> Address:
    """The address in settings.REDRIVE_DATA_DIR. Raises OperationalError that says how to start a server."""
    data_dir = Path(settings.REDRIVE_DATA_DIR)
    try:
        found = address.read(data_dir)
    except EmbeddedError as error:
        raise OperationalError(str(error)) from error
    if found is None:
        raise OperationalError(_how_to_start(data_dir))
    return found


class DatabaseClient(PostgresClient):
    """``manage.py dbshell``."""

    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Iterable[str]
    ) -> tuple[list[str], dict[str, str] | None]:
        found = current_address()
        place = {"HOST": found.host, "PORT": found.port, "USER": found.user, "PASSWORD": found.password}
        return super().settings_to_cmd_args_env({**settings_dict, **place}, parameters)


class DatabaseWrapper(base.DatabaseWrapper):
    """The database is settings_dict["NAME"], as the test runner wants it; everything else comes from the address."""

    client_class = DatabaseClient

    def get_connection_params(self) -> dict[str, Any]:
        found = current_address()
        place = {"host": found.host, "port": found.port, "user": found.user, "password": found.password}
        params: dict[str, Any] = super().get_connection_params()
        return {**params, **NO_TLS, **place}

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        try:
            return super().get_new_connection(conn_params)
        except psycopg.OperationalError as error:
            if _nobody_listens(conn_params["host"], conn_params["port"]):
                raise OperationalError(_how_to_start(Path(settings.REDRIVE_DATA_DIR))) from error
            raise

    @property
    def pool(self) -> Any:
        """Django's pool, which resolves the address again for each connection that it opens."""
        pool = super().pool
        if pool is not None:
            pool.kwargs = lambda: {**self.get_connection_params(), "autocommit": True}
        return pool


def _nobody_listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=3).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _how_to_start(data_dir: Path) -> str:
    return (
        f"No database runs for the data directory {data_dir}; start it with 'python manage.py up', or set DATABASE_URL "
        "to a PostgreSQL server, or REDRIVE_DATA_DIR to the data directory of a running one."
    )
