"""Starting the server's process and seeing it come up."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tasks.embedded import pidfile, probe
from tasks.embedded.account import ENVIRONMENT
from tasks.embedded.address import HOST, Address
from tasks.embedded.errors import EmbeddedError
from tasks.embedded.place import Place
from tasks.embedded.spawn import spawn

LOG_LIMIT = 8 * 1024 * 1024
#: Recovery after a crash may read a lot of WAL.
READY_SECONDS = 120.0
#: Processes of a killed server notice within moments that it is gone, and let go of its memory and its port.
LEFTOVER_SECONDS = 20.0
#: What a failed start says where another try, or another port, will do.
PASSING = re.compile(
    r"pre-existing shared memory block|lock file .* already exists|could not bind|could not create any TCP/IP sockets"
)
#: The servers that this process has started, until they were seen to end.
_children: dict[int, subprocess.Popen[bytes]] = {}


class NotStarted(Exception):
    """The server's process ended before it was ready; the text is what it wrote."""


def launch(where: Place, address: Address, log: Path, options: Mapping[str, str]) -> Address:
    """Start the server of ``where`` at ``address`` or, where its port is taken, at another; wait for a query's answer.

    Returns the address it got. Raises EmbeddedError with the server's own reason where it does not start.
    """
    deadline = time.monotonic() + LEFTOVER_SECONDS
    _rotate(log)
    while True:
        pidfile.disarm(where.pgdata)
        candidate = replace(address, port=probe.free_port(address.port))
        try:
            _attempt(where, candidate, log, options)
        except NotStarted as error:
            if time.monotonic() > deadline or not PASSING.search(str(error)):
                raise EmbeddedError(f"PostgreSQL did not start: {_cause(str(error))} (its log: {log})") from error
            time.sleep(0.2)
        else:
            return candidate


def reap() -> None:
    """Forget the children that ended, so that none stays behind as a zombie."""
    for pid, process in list(_children.items()):
        if process.poll() is not None:
            _children.pop(pid, None)


def end(pid: int, pgdata: Path, first: signal.Signals, seconds: float) -> None:
    """Stop the server process ``pid``: ``first`` and ``seconds`` of patience, then SIGQUIT, then SIGKILL.

    Raises EmbeddedError where it is not ours to stop, or does not end.
    """
    for number, patience in ((first, seconds), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        except PermissionError as error:
            raise EmbeddedError(f"PostgreSQL (process {pid}) belongs to another user, who must stop it.") from error
        if _gone(pid, pgdata, patience):
            return
    raise EmbeddedError(f"PostgreSQL (process {pid}) does not end, not even killed; look at the machine.")


def _gone(pid: int, pgdata: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while pidfile.is_postmaster(pid, pgdata):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
        reap()
    reap()
    return True


def _attempt(where: Place, address: Address, log: Path, options: Mapping[str, str]) -> None:
    begin = log.stat().st_size if log.exists() else 0
    process = _spawn(where, address.port, log, options)
    try:
        _await_ready(process, address, where.pgdata, log, begin)
    except BaseException:
        # Also when we are interrupted: a server that nobody knows of must not stay.
        if process.poll() is None:
            process.send_signal(signal.SIGQUIT)
            process.wait()
        raise
    _children[process.pid] = process


def _spawn(where: Place, port: int, log: Path, options: Mapping[str, str]) -> subprocess.Popen[bytes]:
    must = {"listen_addresses": HOST, "port": str(port), "unix_socket_directories": "", "logging_collector": "off"}
    words = [word for name, value in {**options, **must}.items() for word in ("-c", f"{name}={value}")]
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "ab") as output:
        return spawn(
            [str(where.bin / "postgres"), "-D", str(where.pgdata), *words],
            environment=ENVIRONMENT,
            stdout=output,
            stderr=output,
            account=where.account,
            last_signal=signal.SIGINT,
        )


def _await_ready(process: subprocess.Popen[bytes], address: Address, pgdata: Path, log: Path, begin: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not probe.answers(address, pgdata):
        if process.poll() is not None:
            raise NotStarted(_said(log, begin))
        if probe.refuses_password(address):
            raise EmbeddedError(
                f"The database in {pgdata} has another password than {log.parent} holds; "
                "delete postgres.password there and start again, and a new one is made."
            )
        if time.monotonic() > deadline:
            raise EmbeddedError(f"PostgreSQL was not ready after {READY_SECONDS:.0f} s (its log: {log})")
        time.sleep(0.05)


def _said(log: Path, begin: int) -> str:
    with log.open("rb") as file:
        file.seek(begin)
        return file.read(LOG_LIMIT).decode(errors="replace")


def _cause(said: str) -> str:
    """The first line that says what is wrong, without its time and process id; our own early questions are no cause."""
    told = [line for line in said.splitlines() if "starting up" not in line and "not yet accepting" not in line]
    wrong = [line for line in told if re.search(r"FATAL|PANIC|[Ee]rror", line)]
    line = wrong[0] if wrong else " ".join(told[-3:]) or "it wrote nothing"
    return re.sub(r"^\S+ \S+ \S+ \[\d+\] ", "", line).strip()


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.replace(log.with_name(f"{log.name}.1"))
