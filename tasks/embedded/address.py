"""Where the embedded server listens, read from files of the data directory. Opens no connection."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from tasks.embedded.errors import EmbeddedError

HOST = "127.0.0.1"
USER = "redrive"
DATABASE = "redrive"
PORT_FILE = "postgres.port"
PASSWORD_FILE = "postgres.password"  # noqa: S105 - a file name


@dataclass(frozen=True)
class Address:
    """What a client needs to connect."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str = DATABASE

    def dsn(self, database: str | None = None) -> str:
        """A URL fit for DATABASE_URL. TLS is off: the server listens on this machine only, without OpenSSL."""
        name = quote(database or self.database, safe="")
        return (
            f"postgresql://{self.user}:{quote(self.password, safe='')}@{self.host}:{self.port}/{name}?sslmode=disable"
        )


def read(data_dir: Path) -> Address | None:
    """The address kept in ``data_dir``, or None where no server was ever started.

    Raises EmbeddedError where the files are there and cannot be read.
    """
    port, password = read_port(data_dir), read_password(data_dir)
    if port is None or password is None:
        return None
    return Address(HOST, port, USER, password)


def read_port(data_dir: Path) -> int | None:
    """The port of the last start, or None (no file, or no port in it)."""
    text = _read(data_dir / PORT_FILE)
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def read_password(data_dir: Path) -> str | None:
    """The password of the role ``redrive``, or None."""
    return _read(data_dir / PASSWORD_FILE) or None


def write_port(data_dir: Path, port: int) -> None:
    """Keep the port for the clients and for the next start."""
    write_private(data_dir / PORT_FILE, f"{port}\n")


def new_password(data_dir: Path) -> str:
    """Make a password and keep it."""
    password = secrets.token_urlsafe(32)
    write_private(data_dir / PASSWORD_FILE, f"{password}\n")
    return password


def write_private(path: Path, text: str) -> None:
    """Write ``path`` with mode 0600 in one step: a reader sees the old content or the new one, never a part."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    os.replace(temporary, path)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise EmbeddedError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
