"""The embedded server: start it, stop it, ask whether it is up."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tasks.embedded import address, initialise, launch, pidfile, place, probe
from tasks.embedded.address import DATABASE, Address
from tasks.embedded.errors import EmbeddedError
from tasks.embedded.lock import Locked, exclusive
from tasks.embedded.place import Place

Mode = Literal["smart", "fast", "immediate"]
SIGNALS: dict[Mode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
LOG_FILE = "postgres.log"
LOCK_FILE = "postgres.lock"
#: How long a server may take to come up or go down while another process waits for it.
CHANGE_SECONDS = 180.0


class EmbeddedServer:
    """The database server of one data directory.

    Several objects, threads and processes may use the same directory: ``start`` finds a server that already runs. The
    server is a child of the process that started it and ends with it (Linux), ``stop`` works from any process.
    """

    def __init__(self, data_dir: Path | str, *, options: Mapping[str, str] | None = None) -> None:
        """``options`` are server settings for this start, such as ``{"fsync": "off"}`` in a test run."""
        self.data_dir = Path(data_dir).resolve()
        self.options = dict(options or {})

    def start(self, *, create: bool = True) -> bool:
        """Make the database where there is none (unless not ``create``), start the server, wait for a query's answer.

        Returns whether this call started it; False where it was running. Raises EmbeddedError with one sentence.
        """
        if create:
            place.prepare(self.data_dir)
        elif self._current() is None:
            raise EmbeddedError(f"There is no database in {self.data_dir} any more; bring it back, or begin anew.")
        with self._lock():
            where = place.resolve(self.data_dir)
            started = not self._find(where)
            if started:
                self._start(where)
            probe.ensure_database(self.address())
            return started

    def stop(self, mode: Mode = "fast", *, seconds: float = 60.0) -> bool:
        """Stop the server, whoever started it, and wait until its process is gone. Returns whether one was running.

        ``fast`` rolls back what is open, ``immediate`` stops like a crash, ``smart`` waits for the clients. One that
        does not end within ``seconds`` is stopped harder.
        """
        if not self.data_dir.is_dir():
            return False
        with self._lock():
            pgdata = self._current()
            pid = pidfile.running(pgdata) if pgdata else None
            if pgdata and pid:
                launch.end(pid, pgdata, SIGNALS[mode], seconds)
            launch.reap()
            return pid is not None

    def restart(self, mode: Mode = "fast") -> None:
        """Stop and start. The port stays, unless another process takes it in between."""
        self.stop(mode)
        self.start()

    def is_up(self) -> bool:
        """Whether the server of this directory answers a query now."""
        where, pgdata = address.read(self.data_dir), self._current()
        return where is not None and pgdata is not None and probe.answers(where, pgdata)

    def address(self) -> Address:
        """Where it listens. Raises EmbeddedError where it was never started."""
        where = address.read(self.data_dir)
        if where is None:
            raise EmbeddedError(f"No database was ever started in {self.data_dir}.")
        return where

    def dsn(self, database: str = DATABASE) -> str:
        """A URL of ``database``, fit for DATABASE_URL."""
        return self.address().dsn(database)

    @property
    def pid(self) -> int | None:
        """The process id of the running server, or None."""
        pgdata = self._current()
        return pidfile.running(pgdata) if pgdata else None

    def _current(self) -> Path | None:
        """The folder of the database, or None. Raises EmbeddedError where we may not look."""
        try:
            return place.current(self.data_dir) if self.data_dir.is_dir() else None
        except OSError as error:
            raise EmbeddedError(f"The database of {self.data_dir} is not ours to see: {error.strerror}.") from error

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Alone with the data directory. What the system refuses meanwhile (a full disk) becomes a sentence."""
        try:
            with exclusive(self.data_dir / LOCK_FILE, seconds=CHANGE_SECONDS):
                yield
        except Locked as error:
            raise EmbeddedError(
                f"Another process has been starting or stopping the database of {self.data_dir} "
                "for minutes; stop that process first."
            ) from error
        except OSError as error:
            raise EmbeddedError(f"The database of {self.data_dir} cannot be started or stopped: {error}.") from error

    def _find(self, where: Place) -> bool:
        """Whether the server runs already. One that is coming up or going down is waited for."""
        deadline = time.monotonic() + CHANGE_SECONDS
        while (pid := pidfile.running(where.pgdata)) is not None:
            self._follow_port(where.pgdata)
            known = address.read(self.data_dir)
            if known and probe.answers(known, where.pgdata):
                return True
            if known is None or probe.refuses_password(known):
                raise EmbeddedError(self._password_sentence(pid))
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"PostgreSQL (process {pid}) holds {where.pgdata} and does not answer; stop it first."
                )
            time.sleep(0.1)
        return False

    def _follow_port(self, pgdata: Path) -> None:
        """The running server knows its port best, should our file be lost or stale."""
        port = pidfile.port(pgdata)
        if port and port != address.read_port(self.data_dir):
            address.write_port(self.data_dir, port)

    def _password_sentence(self, pid: int) -> str:
        file = self.data_dir / address.PASSWORD_FILE
        return (
            f"The database (process {pid}) runs with another password than {file} holds; stop it, delete that file "
            "and start again, and a new password is made."
        )

    def _start(self, where: Place) -> None:
        launch.reap()
        password = address.read_password(self.data_dir)
        if not where.pgdata.exists():
            password = password or address.new_password(self.data_dir)
            initialise.create(where, password)
        elif password is None:
            password = address.new_password(self.data_dir)
            initialise.set_password(where, password)
        wanted = Address(address.HOST, address.read_port(self.data_dir) or 0, address.USER, password)
        got = launch.launch(where, wanted, self.data_dir / LOG_FILE, self.options)
        address.write_port(self.data_dir, got.port)
