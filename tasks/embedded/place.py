"""Where a data directory's database and its programs live.

Normally the database is ``<data directory>/pg18`` and the programs stay in the wheel. As root the server runs under
an unprivileged account; where that account cannot reach either of the two (a parent folder of mode 700), both live
under ``/var/lib/redrive/<hash>`` and the data directory holds a pointer. No parent's mode is ever widened.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import unicodedata
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tasks.embedded import account as accounts
from tasks.embedded import address, binaries
from tasks.embedded.account import Account
from tasks.embedded.binaries import Installation
from tasks.embedded.errors import EmbeddedError

SHARED = Path("/var/lib/redrive")
POINTER_FILE = "postgres.pointer"
PROGRAMS = ("postgres", "initdb")


@dataclass(frozen=True)
class Place:
    """One database: its folder (with the major version in the name), its programs, the account that runs them."""

    pgdata: Path
    bin: Path
    account: Account | None


def prepare(data_dir: Path) -> None:
    """Make the data directory. Raises EmbeddedError where that, or writing into it, is impossible.

    Mode 0700; 0711 when root makes it, so that the server's account can pass through to its own folder.
    """
    if not _can_be_told(data_dir):
        raise EmbeddedError(f"The path {str(data_dir)!a} cannot be used: a control character or no UTF-8 is in it.")
    try:
        if not data_dir.is_dir():
            data_dir.mkdir(parents=True, mode=0o700, exist_ok=True)
            data_dir.chmod(0o711 if os.geteuid() == 0 else 0o700)
        with tempfile.TemporaryFile(dir=data_dir):
            pass
    except OSError as error:
        raise EmbeddedError(f"The data directory {data_dir} cannot be written: {error.strerror}.") from error


def _can_be_told(path: Path) -> bool:
    """PostgreSQL takes no line break in a path and gives it back as text, and so do we."""
    return not any(unicodedata.category(character) in {"Cc", "Cs"} for character in str(path))


def home(data_dir: Path) -> Path:
    """The folder that holds the database's folder: the data directory, or what its pointer names."""
    try:
        text = (data_dir / POINTER_FILE).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return data_dir
    except OSError as error:
        raise EmbeddedError(f"{data_dir / POINTER_FILE} cannot be read: {error.strerror}.") from error
    if not Path(text).is_dir():
        raise EmbeddedError(
            f"{data_dir / POINTER_FILE} names {text or 'nothing'}, which is not there; bring the folder back, "
            f"or delete {data_dir} to begin anew."
        )
    return Path(text)


def existing(directory: Path) -> dict[int, Path]:
    """The databases in ``directory`` by major version."""
    return {
        int(match[1]): path
        for path in directory.iterdir()
        if (match := re.fullmatch(r"pg(\d+)", path.name)) and (path / "PG_VERSION").is_file()
    }


def current(data_dir: Path) -> Path | None:
    """The folder of the newest database of ``data_dir``, or None; looks at files only."""
    databases = existing(home(data_dir))
    return databases[max(databases)] if databases else None


def resolve(data_dir: Path) -> Place:
    """The place of the database of ``data_dir``, which need not exist yet; makes the shared folder where needed."""
    directory = home(data_dir)
    databases = existing(directory)
    installation = binaries.choose(set(databases))
    if installation.major in databases:
        return _place_of(databases[installation.major], installation)
    if (directory / f"pg{installation.major}").exists():
        raise EmbeddedError(f"{directory}/pg{installation.major} is not a PostgreSQL database; move it away.")
    user = accounts.for_new_data()
    if directory == data_dir and not (accounts.can_enter(data_dir, user) and _runs(installation.bin, user)):
        directory = _make_shared(data_dir)
    return Place(directory / f"pg{installation.major}", _reachable_bin(directory, installation, user), user)


def _place_of(pgdata: Path, installation: Installation) -> Place:
    user = accounts.owner_of(pgdata)
    if not accounts.can_enter(pgdata, user):
        raise EmbeddedError(
            f"The account {user.name if user else ''} cannot reach its database {pgdata}; move the data directory "
            "back, or let the account pass through the folders above it (chmod o+x)."
        )
    return Place(pgdata, _reachable_bin(pgdata.parent, installation, user), user)


def _runs(directory: Path, user: Account | None) -> bool:
    return user is None or all(accounts.succeeds([directory / name, "--version"], user) for name in PROGRAMS)


def _reachable_bin(directory: Path, installation: Installation, user: Account | None) -> Path:
    """The programs as ``user`` can run them: where they are, else a copy under the shared folder."""
    if _runs(installation.bin, user):
        return installation.bin
    if user is None or installation.package is None:
        raise EmbeddedError(f"The account {user.name if user else ''} cannot run {installation.bin}/postgres.")
    base = directory if directory.parent == SHARED else SHARED
    copied = _copy(installation.package, base / f"postgresql-{installation.version}")
    if not _runs(copied, user):
        raise EmbeddedError(f"The account {user.name} cannot run {copied}/postgres; {SHARED} must be open to it.")
    return copied


def _make_shared(data_dir: Path) -> Path:
    """A new folder ``/var/lib/redrive/<hash>``, named in the data directory's pointer file.

    A data directory that was deleted and made again at the same path gets a folder of its own: the old one may still
    hold somebody's tasks, and its password is gone.
    """
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    try:
        _make_passable(SHARED)
        for number in count(1):
            directory = SHARED / (digest if number == 1 else f"{digest}-{number}")
            if not directory.exists():
                break
        directory.mkdir(mode=0o711)
        directory.chmod(0o711)
        address.write_private(directory / "origin", f"{data_dir}\n")
        address.write_private(data_dir / POINTER_FILE, f"{directory}\n")
    except OSError as error:
        raise EmbeddedError(f"No folder for the database could be made under {SHARED}: {error.strerror}.") from error
    return directory


def _make_passable(directory: Path) -> None:
    if not directory.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o755)


def _copy(package: Path, target: Path) -> Path:
    """Copy the wheel's programs to ``target``, complete or not at all, readable by all and writable by root only."""
    inner = Path(package.name, "pginstall")
    if not (target / inner / "bin").is_dir():
        _make_passable(target.parent)
        work = Path(tempfile.mkdtemp(prefix=f"{target.name}.new-", dir=target.parent))
        try:
            for part in ("bin", "lib", "share"):
                shutil.copytree(package / "pginstall" / part, work / inner / part)
            # Libraries that the wheel brings along; the programs look for them three folders up.
            if (package.parent / f"{package.name}.libs").is_dir():
                shutil.copytree(package.parent / f"{package.name}.libs", work / f"{package.name}.libs")
            _open_to_all(work)
            work.rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return target / inner / "bin"


def _open_to_all(top: Path) -> None:
    top.chmod(0o755)
    for folder, directories, files in os.walk(top):
        for name in directories:
            Path(folder, name).chmod(0o755)
        for name in files:
            path = Path(folder, name)
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
