"""``manage.py up`` as a person runs it: one process in the foreground, everything under it, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from tasks.embedded.server import EmbeddedServer
from tests.cluster import wait_until
from tests.conftest import make_data_dir, remove_data_dir
from tests.tasks.embedded.test_server import alive, until

ROOT = Path(__file__).parents[2]
PASSWORD = "only-for-this-test"
READY_SECONDS = 90
WORDS = ("postgres", "uvicorn", "qcluster")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Up:
    """One ``manage.py up``, in a session of its own as in a terminal."""

    def __init__(self, data_dir: Path | str, *words: str, port: int | None = None, **environment: str) -> None:
        self.data_dir, self.port = Path(data_dir), port or free_port()
        clean = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDRIVE_DATA_DIR"}}
        clean |= {"DJANGO_SETTINGS_MODULE": "config.settings", "REDRIVE_WORKERS": "1", "REDRIVE_DRAIN_SECONDS": "5"}
        clean |= {"REDRIVE_OPERATOR_PASSWORD": PASSWORD}
        command = [sys.executable, "manage.py", "up", "--data-dir", str(data_dir), "--port", str(self.port), *words]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=clean | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def until_said(self, start: str, seconds: float = READY_SECONDS) -> str:
        """The next line that begins with ``start``."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                pytest.fail(f"no line {start!r} within {seconds} s; it said:\n" + "\n".join(self.said))
            if line is None:
                pytest.fail(f"it ended without a line {start!r}; it said:\n" + "\n".join(self.said))
            if line.startswith(start):
                return line

    def family(self) -> dict[int, str]:
        """The command lines of everything under it."""
        found = {}
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                found[child.pid] = " ".join(child.cmdline())
        return found

    def part(self, word: str) -> int:
        """The process id of the direct child whose command line has ``word``."""
        children = psutil.Process(self.process.pid).children()
        return next(child.pid for child in children if word in " ".join(child.cmdline()))

    def wait(self, seconds: float = 60) -> int:
        """Its exit code."""
        code = self.process.wait(seconds)
        self._reader.join()
        return code

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()

    def get(self, path: str) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return int(answer.status)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            self._lines.put(line.rstrip("\n"))
        self.process.stdout.close()
        self._lines.put(None)


def clear(up: Up) -> None:
    """Kill what a failed test has left."""
    if up.process.poll() is None:
        left = up.family()
        up.process.kill()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    up.wait()


@contextlib.contextmanager
def a_home() -> Iterator[Path]:
    folder = make_data_dir("redrive up ")
    yield folder / "data"
    EmbeddedServer(folder / "data").stop("immediate")
    if (folder / "data").exists():
        remove_data_dir(folder / "data")
    folder.rmdir()


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A data directory that runs of several tests share one after the other: migrated once."""
    with a_home() as folder:
        yield folder


@pytest.fixture(scope="module")
def shared() -> Iterator[Up]:
    """A run that several tests share and none of them stops."""
    with a_home() as folder:
        up = Up(folder)
        try:
            up.until_said("ready: ")
            yield up
            assert up.stop() == 0
        finally:
            clear(up)


@pytest.fixture
def running() -> Iterator[list[Up]]:
    """The runs of one test."""
    runs: list[Up] = []
    yield runs
    for up in runs:
        clear(up)


@pytest.fixture
def up(home: Path, running: list[Up]) -> Up:
    """A run of the test's own that is ready."""
    running.append(Up(home))
    running[0].until_said("ready: ")
    return running[0]


def nothing_left(pids: dict[int, str], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while left := {pid: line for pid, line in pids.items() if alive(pid)}:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)


def test_it_serves_and_works(shared: Up) -> None:
    assert shared.said.count(f"ready: http://127.0.0.1:{shared.port}") == 1
    assert sign_in(shared, PASSWORD).startswith("/tasks/")
    assert sign_in(shared, "guess") == "/login/"
    live = "SELECT pid FROM tasks_workerprocess WHERE role = 'worker' AND stopped_at IS NULL AND lease_until > now()"
    with psycopg.connect(EmbeddedServer(shared.data_dir).dsn(), autocommit=True) as connection:
        # Another test of this file may have killed the workers just before: they are back within seconds.
        wait_until(
            lambda: len({pid for (pid,) in connection.execute(live)} & set(shared.family())) == 1, "its one worker"
        )


def sign_in(up: Up, password: str) -> str:
    """The path of the page that a person sees after the login form."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    address = f"http://127.0.0.1:{up.port}/login/"
    with browser.open(address, timeout=10) as page:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode())
    assert token is not None
    form = {"csrfmiddlewaretoken": token[1], "username": "operator", "password": password}
    with browser.open(address, urllib.parse.urlencode(form).encode(), timeout=10) as page:
        return str(urllib.parse.urlsplit(page.url).path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all(up: Up, number: signal.Signals) -> None:
    family = up.family()
    assert all(any(word in line for line in family.values()) for word in WORDS)
    assert up.stop(number) == 0
    nothing_left(family, seconds=0)
    assert up.said[-1] == f"stopped; the data is in {up.data_dir}"
    assert not EmbeddedServer(up.data_dir).is_up()


def test_secrets_are_private(shared: Up) -> None:
    key = shared.data_dir / "secret_key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(key.read_text().strip()) >= 50
    assert not any(key.read_text().strip() in line or PASSWORD in line for line in shared.said)


def test_a_second_run_on_the_same_directory_is_refused(shared: Up, running: list[Up]) -> None:
    second = Up(shared.data_dir)
    running.append(second)
    assert second.wait() == 1
    assert second.said == [f"CommandError: Another 'manage.py up' runs on {shared.data_dir}; stop it first."]
    assert shared.get("/login/") == 200


def test_a_taken_port_is_named_before_anything_is_made(running: list[Up]) -> None:
    folder = make_data_dir()
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        refused = Up(folder, port=port)
        running.append(refused)
        assert refused.wait() == 1
    assert refused.said[-1].startswith(f"CommandError: Port {port} of 127.0.0.1 cannot be used")
    assert not (folder / "pg18").exists()
    remove_data_dir(folder)


def test_of_two_runs_on_one_port_just_one_is_ready(running: list[Up]) -> None:
    """Started at the same moment, each on a data directory of its own: the other one says why, and leaves nothing."""
    with a_home() as first, a_home() as second:
        port = free_port()
        running += [Up(first, port=port), Up(second, port=port)]
        until(lambda: any(up.process.poll() is not None for up in running), seconds=READY_SECONDS)
        (refused,) = (up for up in running if up.process.poll() is not None)
        (other,) = (up for up in running if up is not refused)
        other.until_said("ready: ")
        assert refused.wait() == 1
        assert refused.said[-1].startswith(f"CommandError: Port {port} of 127.0.0.1 cannot be used")
        assert not any(line.startswith("ready: ") for line in refused.said)
        assert not EmbeddedServer(refused.data_dir).is_up()
        assert other.stop() == 0


def test_it_is_ready_by_its_own_answer_and_stops_together(up: Up) -> None:
    """The port is held from the start: nobody else can answer there, be it for a moment while the web is started."""
    os.kill(up.part("uvicorn"), signal.SIGKILL)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", up.port))
        other.listen()
    assert up.get("/login/") == 200, "a caller waits for the next web process"
    assert up.stop() == 0
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", up.port)):
        pass


@pytest.mark.parametrize(
    ("folder", "told"),
    [
        ("", "--data-dir is empty"),
        (str(ROOT), f"The data directory {ROOT} is the program's own folder"),
        ("/dev/null", "The data directory /dev/null cannot be written"),
        ("/nowhere/b\udcff", "The path '/nowhere/b\\udcff' cannot be used"),
        ("/nowhere/two\nlines", "The path '/nowhere/two\\nlines' cannot be used"),
    ],
)
def test_a_folder_that_can_be_none_is_a_sentence(running: list[Up], folder: str, told: str) -> None:
    running.append(Up(folder))
    assert running[0].wait() == 1
    (sentence,) = running[0].said
    assert sentence.startswith(f"CommandError: {told}")


@pytest.fixture
def small_disk() -> Iterator[Callable[[int], Path]]:
    """Makes a file system of so many MiB, in a folder that the server's account can reach."""
    folder = make_data_dir("redrive disk ")
    mounted: list[str] = []

    def mount(size: int) -> Path:
        place = folder / f"{size}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}m,mode=0755", "tmpfs", str(place)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("this account cannot mount a file system")
        mounted.append(str(place))
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", place], check=True)
    remove_data_dir(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
@pytest.mark.parametrize("size", [1, 42, 46])
def test_a_full_disk_is_a_sentence(running: list[Up], small_disk: Callable[[int], Path], size: int) -> None:
    """While the database is made, while it is filled, while the static files are placed."""
    folder = small_disk(size) / "data"
    running.append(Up(folder))
    assert running[0].wait(READY_SECONDS) == 1
    said = running[0].said
    assert said[-1].startswith("CommandError: ")
    assert "No space left on device" in said[-1]
    assert not any(line.startswith("Traceback") for line in said)
    assert not EmbeddedServer(folder).is_up()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
def test_a_disk_that_cannot_be_written_is_a_sentence(running: list[Up], small_disk: Callable[[int], Path]) -> None:
    place = small_disk(1)
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    running.append(Up(place / "data"))
    assert running[0].wait() == 1
    sentence = f"CommandError: The data directory {place}/data cannot be written: Read-only file system."
    assert running[0].said == [sentence]


def test_a_directory_that_cannot_be_written_is_named(running: list[Up]) -> None:
    refused = Up(Path("/proc/version/inner"))
    running.append(refused)
    assert refused.wait() == 1
    assert len(refused.said) == 1
    assert refused.said[0].startswith("CommandError: The data directory /proc/version/inner cannot be written")


def test_the_login_is_made_once(up: Up, running: list[Up]) -> None:
    assert up.stop() == 0
    again = Up(up.data_dir, REDRIVE_OPERATOR_PASSWORD="another")
    running.append(again)
    assert "exists" in again.until_said("login: ")
    again.until_said("ready: ")
    assert again.stop() == 0


@pytest.mark.parametrize("part", WORDS)
def test_a_part_that_is_killed_comes_back(shared: Up, part: str) -> None:
    killed = shared.part(part)
    os.kill(killed, signal.SIGKILL)

    def is_back() -> bool:
        with contextlib.suppress(StopIteration, psutil.NoSuchProcess):
            return shared.part(part) != killed and EmbeddedServer(shared.data_dir).is_up()
        return False

    until(is_back, seconds=30)

    def serves() -> bool:
        with contextlib.suppress(OSError):
            return shared.get("/login/") == 200
        return False

    until(serves, seconds=30)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
def test_killed_itself_it_takes_everything_along(up: Up, running: list[Up]) -> None:
    family = up.family()
    up.process.kill()
    nothing_left(family, seconds=20)
    again = Up(up.data_dir, port=up.port)
    running.append(again)
    again.until_said("ready: ")
    assert again.stop() == 0


def test_a_signal_before_it_is_ready_leaves_nothing(home: Path, running: list[Up]) -> None:
    early = Up(home)
    running.append(early)
    early.until_said("database: ")
    early.process.send_signal(signal.SIGINT)
    assert early.wait() in {0, 128 + signal.SIGINT}
    assert not EmbeddedServer(home).is_up()


def of_directory(folder: Path) -> dict[int, str]:
    """The processes that have to do with a data directory, whoever started them."""
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = " ".join(process.cmdline())
            if str(folder) in line or process.environ().get("REDRIVE_DATA_DIR") == str(folder):
                found[process.pid] = line
    return {pid: line for pid, line in found.items() if alive(pid)}


#: Signs of how far a fresh start has come.
EARLY: dict[str, Callable[[Up], bool]] = {
    "its folder is made": lambda up: up.data_dir.exists(),
    "initdb is at work": lambda up: any(up.data_dir.glob("pg18.new-*/data/base")),
    "the server is started": lambda up: (up.data_dir / "pg18/postmaster.pid").exists(),
    "migrations": lambda up: any(line.startswith("database: ") for line in up.said),
    "the static files are placed": lambda up: (up.data_dir / "static").exists(),
    "the web process is started": lambda up: any("uvicorn" in line for line in up.family().values()),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_early_moment_leaves_no_process_and_a_folder_that_starts(
    running: list[Up], number: signal.Signals
) -> None:
    """To the whole group, as a terminal sends it. Each run goes on from where the one before was ended."""
    with a_home() as folder:
        for sign in EARLY.values():
            up = Up(folder)
            running.append(up)
            until(lambda up=up, sign=sign: sign(up), seconds=READY_SECONDS)
            os.killpg(up.process.pid, number)
            assert up.wait() in {0, -number, 128 + number, 128 + signal.SIGINT}
            assert "Traceback" not in "\n".join(up.said)
            assert of_directory(folder) == {}
        running.append(Up(folder))
        running[-1].until_said("ready: ")
        assert running[-1].stop() == 0


def test_the_demo_is_ready_first_and_stops_with_the_rest(home: Path, running: list[Up]) -> None:
    demo = Up(home, "--demo")
    running.append(demo)
    demo.until_said("demo: ready")
    demo.until_said("ready: ")
    family = demo.family()
    assert any(line.endswith("manage.py demo") for line in family.values())
    assert demo.stop() == 0
    nothing_left(family, seconds=0)
