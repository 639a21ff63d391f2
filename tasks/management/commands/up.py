"""``manage.py up``: the whole system in the foreground."""

from __future__ import annotations

import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, connections

from tasks.embedded import place
from tasks.embedded.errors import EmbeddedError
from tasks.embedded.lock import Locked, exclusive
from tasks.embedded.server import EmbeddedServer
from tasks.supervise import prepare, readiness
from tasks.supervise.parts import Heard, make_parts
from tasks.supervise.signals import StopRequested, StopSignals
from tasks.supervise.supervisor import Supervisor

HOST = "127.0.0.1"
LOCK_FILE = "up.lock"
LAST_PORT = 65_535


class Command(BaseCommand):
    """Database, migrations, login, web, workers; with --demo the simulated provider too. Ctrl-C stops all."""

    help = "Run everything in the foreground: database, web, workers. Ctrl-C stops it, a second Ctrl-C at once."
    # They need the secret key and some of them the database, which come first here.
    requires_system_checks = []  # noqa: RUF012 - Django's own form

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The options."""
        parser.add_argument(
            "--demo",
            action="store_true",
            help="also run a simulated provider and a trickle of tasks ('manage.py demo --help' tells of real models)",
        )
        parser.add_argument("--port", type=int, default=8000, help="the console's port on 127.0.0.1 (default: 8000)")
        parser.add_argument(
            "--data-dir",
            metavar="FOLDER",
            help="folder of database and secrets (default: $REDRIVE_DATA_DIR or .redrive)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until a signal. CommandError (exit 1, one sentence) where it cannot start."""
        data_dir = _data_dir(options["data_dir"])
        if not 1 <= options["port"] <= LAST_PORT:
            raise CommandError(f"--port is {options['port']}; it must be from 1 to {LAST_PORT}.")
        try:
            place.prepare(data_dir)
            with exclusive(data_dir / LOCK_FILE, seconds=0), StopSignals() as signals:
                self._settle(data_dir)
                self._run(data_dir, options["port"], options["demo"], signals)
        except Locked:
            raise CommandError(f"Another 'manage.py up' runs on {data_dir}; stop it first.") from None
        except (EmbeddedError, prepare.PortRefused) as error:
            raise CommandError(str(error)) from error
        except (OperationalError, InterfaceError) as error:
            raise CommandError(f"The database cannot be used: {str(error).strip().splitlines()[0]}") from error
        except OSError as error:
            # A full disk, no more processes or open files: nothing that a traceback would help with.
            why = error.strerror or error
            raise CommandError(
                f"'manage.py up' cannot go on in {data_dir}: {why}. Mend that, then start again."
            ) from error
        except StopRequested:
            self._say("stopped before it was ready")
            sys.exit(128 + signal.SIGINT)

    def _settle(self, data_dir: Path) -> None:
        """See to it that this process has the settings of ``data_dir``.

        They were read before we were asked; where they are another folder's, the command begins once more with the
        folder in its environment (our lock is let go by that and taken again). A secret key is made where none is.
        """
        if data_dir != settings.REDRIVE_DATA_DIR:
            environment = {**os.environ, "REDRIVE_DATA_DIR": str(data_dir)}
            # Where Python is only starting, Ctrl-C would be a traceback; manage.py hears it a moment later.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606 - ourselves
        if not _has_secret_key():
            settings.SECRET_KEY = prepare.new_secret_key(data_dir)

    def _run(self, data_dir: Path, port: int, demo: bool, signals: StopSignals) -> None:
        with closing(prepare.open_door(HOST, port)) as door, self._database(data_dir, signals) as database:
            self.check()
            self._say("preparing: database, static files, processes; the first time takes a minute")
            prepare.migrate()
            prepare.collect_static()
            self._say(prepare.ensure_operator())
            heard = Heard(self._say)
            parts = make_parts(data_dir, door, heard if demo else None)
            began = readiness.database_now()
            signals.calm()
            supervisor = Supervisor(parts, database, signals, self._warn)

            def missing() -> str | None:
                if demo and not heard.ready:
                    return "the demo"
                return readiness.missing(HOST, port, began)

            try:
                supervisor.run(missing, lambda: self._say(f"ready: http://{HOST}:{port}"))
            finally:
                # Once the web process has gone a caller is to be refused, not to wait.
                door.close()
                supervisor.stop()

    @contextmanager
    def _database(self, data_dir: Path, signals: StopSignals) -> Iterator[EmbeddedServer | None]:
        """The embedded server, started, and stopped in the end if it was we who started it; None with DATABASE_URL."""
        self._say(f"data directory: {data_dir}")
        if settings.DATABASES["default"]["ENGINE"] != "tasks.embedded.backend":
            self._say("database: the one of DATABASE_URL")
            try:
                yield None
            finally:
                with suppress(OSError):
                    self._say("stopped; the data is in the database of DATABASE_URL")
            return
        server = EmbeddedServer(data_dir)
        ours, files = server.pid is None, None
        try:
            ours = server.start() or ours
            where = server.address()
            self._say(f"database: embedded PostgreSQL at {where.host}:{where.port}")
            files = place.home(data_dir)
            if files != data_dir:
                self._say(f"database files: {files}")
            yield server
        finally:
            connections.close_all()
            if ours:
                server.stop(seconds=5 if signals.hurry else 60)
            # The terminal may be what went away.
            with suppress(OSError):
                self._say(f"stopped; the data is in {files}" if files else "stopped")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def _warn(self, text: str) -> None:
        self.stderr.write(text)
        self.stderr.flush()


def _data_dir(given: str | None) -> Path:
    """The folder that was asked for. Raises CommandError for what can be none."""
    if given == "":
        raise CommandError("--data-dir is empty; give the path of a folder.")
    data_dir = Path(given or settings.REDRIVE_DATA_DIR).absolute()
    if data_dir.resolve() == settings.BASE_DIR.resolve():
        raise CommandError(
            f"The data directory {data_dir} is the program's own folder; choose another with --data-dir."
        )
    return data_dir


def _has_secret_key() -> bool:
    try:
        return bool(settings.SECRET_KEY)
    except ImproperlyConfigured:
        return False
