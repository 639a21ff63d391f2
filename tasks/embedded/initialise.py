"""Making a database: initdb into a temporary folder, then one rename, so that a half-made one never looks whole."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tasks.embedded import address
from tasks.embedded.account import Account, run
from tasks.embedded.errors import EmbeddedError
from tasks.embedded.place import Place

#: Defaults a person may change in postgresql.conf; what must hold is passed on the command line at each start.
CONFIGURATION = """
# Redrive
max_connections = 200
shared_buffers = 128MB
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] '
log_checkpoints = off
# No statement and no row in the log: they carry payloads, prompts and answers.
log_min_error_statement = panic
log_error_verbosity = terse
"""


def create(place: Place, password: str) -> None:
    """Make the database of ``place`` with the superuser ``redrive``. Raises EmbeddedError where initdb fails.

    UTF-8 and locale C: sorting is the same everywhere, and the wheel's programs come without ICU.
    """
    try:
        _discard_leftovers(place.pgdata)
        work = Path(tempfile.mkdtemp(prefix=f"{place.pgdata.name}.new-", dir=place.pgdata.parent))
    except OSError as error:
        raise EmbeddedError(f"No database can be made in {place.pgdata.parent}: {error.strerror}.") from error
    try:
        _initdb(place, work, password)
        with (work / "data" / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(CONFIGURATION)
        (work / "data").rename(place.pgdata)
        _sync(place.pgdata.parent)
    except OSError as error:
        raise EmbeddedError(f"No database can be made in {place.pgdata.parent}: {error.strerror}.") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def set_password(place: Place, password: str) -> None:
    """Give the role ``redrive`` of a stopped server a new password (the file with the old one is gone)."""
    program: list[str | Path] = [place.bin / "postgres", "--single", "-D", place.pgdata, "postgres"]
    done = run(program, place.account, stdin=f"ALTER ROLE {address.USER} PASSWORD '{password}'\n")
    if done.returncode != 0:
        raise EmbeddedError(f"The password of the database could not be set anew: {_last_line(done)}")


def _initdb(place: Place, work: Path, password: str) -> None:
    file = work / "password"
    address.write_private(file, password)
    for path in (work, file):
        _hand_over(path, place.account)
    words = ["-U", address.USER, "--auth=scram-sha-256", f"--pwfile={file}", "--encoding=UTF8", "--locale=C"]
    try:
        done = run([place.bin / "initdb", "-D", work / "data", *words], place.account)
    except subprocess.SubprocessError as error:
        raise EmbeddedError(f"initdb did not end: {error}.") from error
    if done.returncode != 0:
        raise EmbeddedError(f"initdb could not make the database: {_last_line(done)}")


def _hand_over(path: Path, account: Account | None) -> None:
    if account:
        os.chown(path, account.uid, account.gid)


def _discard_leftovers(pgdata: Path) -> None:
    """Remove what a start that was killed has left. Nobody is at work in it: the caller holds the start lock."""
    for path in pgdata.parent.glob(f"{pgdata.name}.new-*"):
        shutil.rmtree(path)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    """The line that says why, without its time and process id.

    initdb ends with remarks about what it removed; the cause is an error before them.
    """
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    telling = [line for line in lines if any(word in line for word in ("error:", "FATAL", "ERROR"))]
    last = (telling or lines or [f"exit code {done.returncode}"])[-1]
    return re.sub(r"^\S+ \S+ \S+ \[\d+\] ", "", last)
