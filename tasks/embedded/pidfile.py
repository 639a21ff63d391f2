"""Whose is ``postmaster.pid``? A server of this database, one that died, or a stranger that got its number."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

#: Above every system's largest process id, so that no process can have it.
NOBODYS_PID = 2**22 + 1
PROC = Path("/proc")


def running(pgdata: Path) -> int | None:
    """The process id of the live postmaster of ``pgdata``, or None."""
    pid = _pid(pgdata)
    return pid if pid and is_postmaster(pid, pgdata) else None


def port(pgdata: Path) -> int | None:
    """The port in the pid file (its fourth line), or None while it is not yet written."""
    lines = _lines(pgdata)
    return int(lines[3]) if len(lines) > 3 and lines[3].strip().isdigit() else None


def is_postmaster(pid: int, pgdata: Path) -> bool:
    """Whether ``pid`` is a server that was started on ``pgdata``. A zombie is none: it has no command line.

    The command line is asked before the working directory, since containers often withhold the latter even from root.
    """
    words = _command_line(pid)
    if not words or not Path(words[0]).name.startswith("postgres"):
        return False
    if str(pgdata) in words:
        return True
    try:
        return (PROC / str(pid) / "cwd").samefile(pgdata)
    except OSError:
        return False


def disarm(pgdata: Path) -> None:
    """Make a leftover pid file harmless where its number now belongs to a stranger (PostgreSQL would refuse to start).

    Only the number is replaced, by one that no process can have: the shared memory key stays in the file, so
    PostgreSQL itself still refuses while processes of the dead server are attached. A file without a number is what a
    full disk leaves; it holds no key and goes. Call it under the start lock, after ``running`` said None.
    """
    path = pgdata / "postmaster.pid"
    pid = _pid(pgdata)
    if pid is None:
        path.unlink(missing_ok=True)
    elif _exists(pid):
        lines = _lines(pgdata)
        # Opened, not replaced: the file keeps the owner that PostgreSQL expects.
        with path.open("r+", encoding="utf-8") as file:
            file.write("\n".join([str(NOBODYS_PID), *lines[1:], ""]))
            file.truncate()


def _lines(pgdata: Path) -> list[str]:
    try:
        return (pgdata / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []


def _pid(pgdata: Path) -> int | None:
    first = next(iter(_lines(pgdata)), "").strip().lstrip("-")
    return int(first) if first.isascii() and first.isdigit() and int(first) > 0 else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _command_line(pid: int) -> list[str]:
    if PROC.joinpath("self").exists():
        try:
            return [os.fsdecode(word) for word in (PROC / str(pid) / "cmdline").read_bytes().split(b"\0") if word]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            # Any other error, such as too many open files, tells nothing about the process: a live server whose pid
            # file was taken for a leftover would lose it.
            return []
    said = subprocess.run(  # noqa: S603 - our own words, no shell
        ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    # Without /proc the words come in one line: the data folder, which may hold spaces, stands between -D and -c.
    program, _, rest = said.stdout.strip().partition(" -D ")
    return [program, rest.partition(" -c ")[0]] if program else []
