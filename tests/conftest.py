"""One real PostgreSQL per test run: the embedded server in a temporary folder, or DATABASE_URL's where that is set.

It is started by the first test that needs it and stopped when the run ends, also when it is interrupted; should the
run be killed, the kernel stops it.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from tasks.embedded import place
from tasks.embedded.server import EmbeddedServer
from tests.site import serve


def pytest_configure() -> None:
    """Mind the signals as at a terminal.

    Under nohup, or as a script's "&", the run begins with them ignored, and so would every process that it starts.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


#: Files that take longest, by how their paths begin. Begun last, one of them would be waited for by itself.
LONGEST = ("tests/drills/", "tests/tasks/test_up.py", "tests/browser/", "tests/tasks/engine/", "tests/config/test_hos")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin the longest files first, in the order that chance has given them."""
    places = {place: number for number, place in enumerate(LONGEST)}
    items.sort(key=lambda item: next((n for begin, n in places.items() if item.nodeid.startswith(begin)), len(places)))


def make_data_dir(prefix: str = "redrive-test-") -> Path:
    """A new folder that the unprivileged account can pass through when we are root (pytest's tmp_path has 0700)."""
    folder = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    folder.chmod(0o711)
    return folder


def remove_data_dir(folder: Path) -> None:
    """Remove the folder, and what its pointer names."""
    home = place.home(folder)
    shutil.rmtree(folder)
    if home != folder:
        shutil.rmtree(home)


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """An empty data directory for a server of the test's own, which is stopped afterwards."""
    folder = make_data_dir()
    yield folder
    EmbeddedServer(folder).stop("immediate")
    remove_data_dir(folder)


@pytest.fixture(scope="session")
def embedded_server() -> Iterator[EmbeddedServer]:
    """The run's server. Its data is worth nothing, so it does not wait for the disk."""
    folder = make_data_dir()
    server = EmbeddedServer(folder, options={"fsync": "off", "full_page_writes": "off"})
    try:
        server.start()
        yield server
    finally:
        server.stop("immediate")
        remove_data_dir(folder)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Called by pytest-django before it makes the test database: see to it that there is a server."""
    if os.environ.get("DATABASE_URL"):
        yield
        return
    server: EmbeddedServer = request.getfixturevalue("embedded_server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "REDRIVE_DATA_DIR", server.data_dir)
        patch.setenv("REDRIVE_DATA_DIR", str(server.data_dir))
        yield


@pytest.fixture
def second_connection(transactional_db: None) -> Iterator[psycopg.Connection]:
    """A second real connection to the test database (autocommit): it sees only what was committed."""
    params = connection.get_connection_params()
    for name in ("cursor_factory", "context"):
        params.pop(name, None)
    with psycopg.connect(**params, autocommit=True) as second:
        yield second


@pytest.fixture(scope="session")
def test_database_url(django_db_setup: None) -> str:
    """DATABASE_URL of the test database, for child processes that work on it."""
    name = str(connection.settings_dict["NAME"])
    if os.environ.get("DATABASE_URL"):
        return psycopg.conninfo.make_conninfo(os.environ["DATABASE_URL"], dbname=name)
    return EmbeddedServer(settings.REDRIVE_DATA_DIR).dsn(name)


@pytest.fixture(scope="session")
def site_url(test_database_url: str) -> Iterator[str]:
    """The console and the API, served for the whole run on the test database."""
    with serve(test_database_url) as (url, _process):
        yield url
