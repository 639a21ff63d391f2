"""As root: the server runs under an account that may not be able to reach what root can."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.embedded import binaries, place
from tasks.embedded.errors import EmbeddedError
from tasks.embedded.server import EmbeddedServer
from tests.conftest import make_data_dir, remove_data_dir
from tests.tasks.embedded.test_server import ask, python, remember

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="about root")


@pytest.fixture
def closed_dir() -> Iterator[Path]:
    """A data directory under a folder of mode 700."""
    parent = make_data_dir("redrive closed ")
    parent.chmod(0o700)
    folder = parent / "data"
    yield folder
    EmbeddedServer(folder).stop("immediate")
    if folder.exists():
        remove_data_dir(folder)
    shutil.rmtree(parent)


def test_the_server_does_not_run_as_root(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    assert Path(f"/proc/{server.pid}").stat().st_uid != 0
    status = Path(f"/proc/{server.pid}/status").read_text()
    assert "Groups:\t \n" in status, "it kept root's groups"


def test_a_directory_that_root_makes_lets_the_account_pass_and_no_more(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir / "made")
    server.start()
    assert stat.S_IMODE((data_dir / "made").stat().st_mode) == 0o711
    assert (data_dir / "made" / "pg18").is_dir()
    server.stop("immediate")


def test_under_a_closed_folder_the_database_lives_elsewhere(closed_dir: Path) -> None:
    server = EmbeddedServer(closed_dir)
    server.start()
    home = place.home(closed_dir)
    assert home.parent == Path("/var/lib/redrive")
    assert (home / "origin").read_text() == f"{closed_dir}\n"
    assert stat.S_IMODE(closed_dir.parent.stat().st_mode) == 0o700
    remember(server, "kept")
    server.restart()
    assert ask(server, "SELECT word FROM memory") == "kept"


def test_a_deleted_directory_begins_anew_and_leaves_the_old_database_alone(closed_dir: Path) -> None:
    server = EmbeddedServer(closed_dir)
    server.start()
    server.stop()
    old = place.home(closed_dir)
    shutil.rmtree(closed_dir)
    try:
        assert server.start() is True
        assert place.home(closed_dir) != old
        assert (old / "pg18" / "PG_VERSION").exists()
    finally:
        shutil.rmtree(old)


def test_a_pointer_to_nowhere_is_named(closed_dir: Path) -> None:
    server = EmbeddedServer(closed_dir)
    server.start()
    server.stop()
    home = place.home(closed_dir)
    aside = home.with_name(home.name + "-aside")
    home.rename(aside)
    try:
        with pytest.raises(EmbeddedError, match="which is not there"):
            server.start()
    finally:
        aside.rename(home)


def test_programs_that_the_account_cannot_reach_are_copied(data_dir: Path, closed_dir: Path) -> None:
    package = binaries.wheel_package()
    assert package is not None
    closed = closed_dir.parent / "site"
    for name in (package.name, f"{package.name}.libs"):
        if (package.parent / name).is_dir():
            shutil.copytree(package.parent / name, closed / name)
    code = (
        "import sys; from tasks.embedded.server import EmbeddedServer as S; s = S(sys.argv[1]); s.start();"
        "print(s.is_up(), open(f'/proc/{s.pid}/cmdline').read().split(chr(0))[0]); s.stop()"
    )
    for _ in range(2):
        done = python(code, str(data_dir), PYTHONPATH=str(closed))
        assert done.stdout.startswith("True /var/lib/redrive/"), done.stderr
    program = Path(done.stdout.split()[1])
    assert program.is_relative_to(place.home(data_dir))
    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    assert program.stat().st_uid == 0


def test_a_database_of_an_ordinary_user_keeps_its_owner(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    server.stop()
    for path in [data_dir / "pg18", *(data_dir / "pg18").rglob("*")]:
        os.chown(path, 12_345, 12_345)
    server.start()
    assert Path(f"/proc/{server.pid}").stat().st_uid == 12_345


def test_a_database_that_belongs_to_root_is_refused_in_a_sentence(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    server.stop()
    os.chown(data_dir / "pg18", 0, 0)
    with pytest.raises(EmbeddedError, match="belongs to root"):
        server.start()
    # So that the fixture can look at it once more.
    os.chown(data_dir / "pg18", 65_534, 65_534)
