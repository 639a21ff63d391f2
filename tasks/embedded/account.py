"""The unprivileged account that PostgreSQL runs under when we are root (it refuses to run as root)."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.embedded.errors import EmbeddedError

#: Tried in this order; every one of them exists on some system without being made for us.
CANDIDATES = ("nobody", "postgres", "daemon", "www-data", "bin")
#: Nothing of the caller's PG* or locale settings reaches the server's programs.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True)
class Account:
    """An entry of the password database."""

    name: str
    uid: int
    gid: int


def run(
    argv: Sequence[str | Path], account: Account | None, *, stdin: str = "", seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end under ``account`` (None: as we are) and capture what it says.

    Raises OSError or subprocess.SubprocessError where it cannot be run at all or takes longer than ``seconds``.
    """
    return subprocess.run(  # noqa: S603 - our own words, no shell
        [str(word) for word in argv],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        cwd="/",
        env=ENVIRONMENT,
        timeout=seconds,
        check=False,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )


def succeeds(argv: Sequence[str | Path], account: Account | None) -> bool:
    """Whether the program can be run under ``account`` and ends with 0."""
    try:
        return run(argv, account, seconds=30).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def can_enter(directory: Path, account: Account | None) -> bool:
    """Whether ``account`` can reach ``directory``: tried out, since ACLs and mounts have their own say."""
    return account is None or succeeds(["/bin/sh", "-c", 'cd -- "$1"', "sh", directory], account)


def for_new_data() -> Account | None:
    """The account for a new database: None (ourselves) unless we are root.

    Raises EmbeddedError where no existing account can be used.
    """
    if os.geteuid() != 0:
        return None
    for name in CANDIDATES:
        account = _named(name)
        if account and succeeds(["/bin/sh", "-c", ":"], account):
            return account
    raise EmbeddedError(
        "PostgreSQL does not run as root and none of the accounts "
        f"{', '.join(CANDIDATES)} can be used; run as an ordinary user, or set DATABASE_URL."
    )


def owner_of(pgdata: Path) -> Account | None:
    """The account that an existing database belongs to; None where we are not root.

    Raises EmbeddedError where it belongs to root, or to another user than the ordinary one we are.
    """
    status = pgdata.stat()
    if os.geteuid() != 0:
        if status.st_uid != os.geteuid():
            raise EmbeddedError(
                f"The database in {pgdata} belongs to another user (uid {status.st_uid}); run as that user."
            )
        return None
    if status.st_uid == 0:
        raise EmbeddedError(
            f"The database in {pgdata} belongs to root, which PostgreSQL refuses; chown -R it to nobody."
        )
    try:
        return Account(pwd.getpwuid(status.st_uid).pw_name, status.st_uid, status.st_gid)
    except KeyError:
        return Account(str(status.st_uid), status.st_uid, status.st_gid)


def _named(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid) if entry.pw_uid != 0 else None
