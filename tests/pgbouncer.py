"""A real PgBouncer in transaction mode before the test database, as its own process."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.cluster import DEADLINE, wait_until
from tests.conftest import make_data_dir, remove_data_dir
from tests.site import free_port

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
#: Sessions on the server; fewer than a cluster has connections, so that they must be shared.
POOL_SIZE = 4
SETTINGS = """
[databases]
{dbname} = host={host} port={port} dbname={dbname}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = {auth_type}
auth_file = {folder}/users
admin_users = {user}
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 300
"""


class PgBouncer:
    """A context manager. ``url``: the database through it. As root it runs as an account without privileges."""

    def __init__(self, url: str) -> None:
        self._server = {"host": "127.0.0.1", "port": "5432", "password": "", **conninfo_to_dict(url)}
        self._port = free_port()
        self.url = make_conninfo(url, host="127.0.0.1", port=str(self._port))
        self._process: subprocess.Popen[bytes]

    def ask(self, command: str) -> list[tuple[Any, ...]]:
        """What its console answers."""
        # Its console speaks the simple protocol only, and knows no transactions.
        with psycopg.connect(make_conninfo(self.url, dbname="pgbouncer"), autocommit=True) as console:
            cursor = psycopg.ClientCursor(console)
            cursor.execute(command)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def __enter__(self) -> PgBouncer:
        assert PROGRAM
        self._folder = make_data_dir("redrive-pgbouncer-")
        account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._write(account.pw_uid if account else -1)
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [PROGRAM, self._folder / "pgbouncer.ini"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **({"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}),
            )
        try:
            wait_until(self._answers, "PgBouncer ready")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise AssertionError(f"PgBouncer ended: {(self._folder / 'log').read_text()}")
        with suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=3):
            return True
        return False

    def _write(self, owner: int) -> None:
        user, password = str(self._server["user"]), str(self._server["password"])
        settings = SETTINGS.format(
            **{name: self._server[name] for name in ("dbname", "host", "port", "user")},
            listen_port=self._port,
            auth_type="scram-sha-256" if password else "trust",
            folder=self._folder,
            pool_size=POOL_SIZE,
        )
        for name, text in (("pgbouncer.ini", settings), ("users", f'"{user}" "{password}"\n')):
            path = Path(self._folder / name)
            path.touch(mode=0o600)
            path.write_text(text)
            os.chown(path, owner, -1)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait(DEADLINE)
        remove_data_dir(self._folder)
