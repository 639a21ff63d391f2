"""What ``up`` makes before the parts can run: the secret key, the operator's login, the static files."""

from __future__ import annotations

import hashlib
import secrets
import socket
from importlib.metadata import version
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.contrib.staticfiles.finders import get_finders
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command

from tasks.embedded import address

OPERATOR = "operator"
#: Connections that may wait to be taken.
BACKLOG = 2048


class PortRefused(Exception):
    """The system does not let us listen there; the text is a sentence that says why."""


def new_secret_key(data_dir: Path) -> str:
    """Make SECRET_KEY and keep it in the data directory, where the settings of every later process find it."""
    key = secrets.token_urlsafe(50)
    address.write_private(data_dir / "secret_key", f"{key}\n")
    return key


def ensure_operator() -> str:
    """Make the first login where there is none. Returns what to tell the person, with the password if we made it.

    Raises CommandError for a REDRIVE_OPERATOR_PASSWORD that Django's validators refuse.
    """
    users = get_user_model()._default_manager
    if users.filter(username=OPERATOR).exists():
        return f"login: user {OPERATOR} (exists; a new password: python manage.py changepassword {OPERATOR})"
    given = settings.REDRIVE_OPERATOR_PASSWORD
    if given:
        _check_password(given)
    password = given or secrets.token_urlsafe(12)
    users.create_superuser(username=OPERATOR, email="", password=password)
    told = "from REDRIVE_OPERATOR_PASSWORD" if given else f"{password} (shown this once)"
    return f"login: user {OPERATOR}, password {told}"


def _check_password(password: str) -> None:
    try:
        validate_password(password, get_user_model()(username=OPERATOR))
    except ValidationError as error:
        why = " ".join(error.messages)
        raise CommandError(f"REDRIVE_OPERATOR_PASSWORD cannot be the operator's password: {why} Set another.") from None


def migrate() -> None:
    """Bring the database up to date; the catalogue follows by itself."""
    call_command("migrate", interactive=False, verbosity=0)


def collect_static() -> None:
    """Hash, compress and place the static files, where they changed since the last time: it takes seconds.

    The stamp beside STATIC_ROOT is written last, so that an interrupted run is done again.
    """
    root = Path(settings.STATIC_ROOT)
    stamp = root.with_name(f"{root.name}.stamp")
    wanted = _static_state()
    if stamp.exists() and stamp.read_text(encoding="utf-8").strip() == wanted and root.is_dir():
        return
    call_command("collectstatic", interactive=False, verbosity=0)
    address.write_private(stamp, f"{wanted}\n")


def _static_state() -> str:
    """A digest of every source file's name, size and time, and of what processes them."""
    state = hashlib.sha256(f"{version('django')} {version('whitenoise')}".encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            status = Path(storage.path(name)).stat()
            state.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return state.hexdigest()


def open_door(host: str, port: int) -> socket.socket:
    """The socket on which the web process is to listen. Raises PortRefused where another program has the port.

    Opened here, once, so that no other program can take the port between a look at it and the web's start: whoever
    gets an answer from it gets ours.
    """
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections take it over from here: uvicorn does not see of what family a socket is that it is given.
        door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        door.bind((host, port))
        # Not before this does the system refuse the port to others.
        door.listen(BACKLOG)
    except OSError as error:
        door.close()
        raise PortRefused(
            f"Port {port} of {host} cannot be used ({error.strerror}); choose another with --port."
        ) from error
    return door
