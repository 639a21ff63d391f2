"""``manage.py submit`` in processes of its own, on the real database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection

from tasks import lifecycle
from tasks.models import Task
from tests.cluster import wait_until
from tests.tasks.lifecycle import world

pytestmark = pytest.mark.django_db(transaction=True)


class Submit:
    """Runs the command; ``started`` leaves it running and kills it at the end."""

    def __init__(self, url: str) -> None:
        self._options = {
            "cwd": settings.BASE_DIR,
            "env": {**os.environ, "DATABASE_URL": url, "SECRET_KEY": "only-for-tests"},
        }

    def run(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "manage.py", "submit", *arguments]
        return subprocess.run(command, input=given, capture_output=True, timeout=60, **self._options)  # type: ignore[call-overload,no-any-return]

    def shell(self, words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """What a person types after ``submit``, with the shell's own ways to close and redirect."""
        command = ["bash", "-c", f"set -o pipefail; {sys.executable} manage.py submit {words}"]
        return subprocess.run(command, input=given, capture_output=True, timeout=60, **self._options)  # type: ignore[call-overload,no-any-return]

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "manage.py", "submit", *arguments]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **self._options) as process:  # type: ignore[call-overload]
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def submit(test_database_url: str) -> Submit:
    return Submit(test_database_url)


def ids(run: subprocess.CompletedProcess[bytes]) -> list[UUID]:
    return [UUID(line) for line in run.stdout.decode().splitlines()]


def payloads(run: subprocess.CompletedProcess[bytes]) -> list[object]:
    """The payloads of the printed ids, in the order of printing."""
    stored = Task.objects.in_bulk(ids(run))
    return [stored[task_id].payload for task_id in ids(run)]


def test_each_line_is_one_payload_of_any_sort(submit: Submit, tmp_path: Path) -> None:
    world.prompt_kind()
    values: list[object] = [{"text": "a"}, [1, 2], "text", 3.5, True, None, {"团队": "支持"}]
    file = tmp_path / "tickets.jsonl"
    file.write_text("\ufeff" + "\n\n".join(json.dumps(value, ensure_ascii=False) for value in values), encoding="utf-8")
    run = submit.run("ticket.triage", "--input", str(file))
    assert run.returncode == 0, run.stderr
    assert payloads(run) == values
    assert run.stderr.decode().rstrip().endswith("Submitted 7 tasks of ticket.triage.")


def test_a_bad_line_is_told_and_the_others_are_submitted(submit: Submit) -> None:
    world.prompt_kind()
    lines = [
        b'{"n": 1}',
        b"{broken",
        b'{"n": 3}\r',
        b'{"n": "\xff"}',
        b"NaN",
        rb'{"n": "\u0000"}',
        b'"' + b"x" * (1024 * 1024) + b'"',
        b'{"n": 8}',
    ]
    run = submit.run("ticket.triage", "--input", "-", given=b"\n".join(lines))
    told = run.stderr.decode()
    assert run.returncode == 2
    assert all(line.startswith(("line ", "Submitted ")) for line in told.splitlines())
    assert "\r" not in told
    assert payloads(run) == [{"n": 1}, {"n": 3}, {"n": 8}]
    assert "line 2: this is not JSON: Expecting property name" in told
    assert "line 4: the line is not UTF-8 (byte 8)" in told
    assert "line 5: this is not JSON that can be kept: NaN is no JSON number" in told
    assert "line 6: The payload holds a NUL character" in told
    assert "line 7: The payload has 1048578 bytes; at most 1048576 are taken." in told
    assert "Submitted 3 tasks of ticket.triage; 5 lines were bad." in told


def test_a_line_without_end_does_not_fill_the_memory(submit: Submit) -> None:
    world.prompt_kind()
    run = submit.run("ticket.triage", "--input", "-", given=b"1\n" + b"[" * (20 * 1024 * 1024) + b"\n2\n")
    assert run.returncode == 2
    assert payloads(run) == [1, 2]
    assert b"line 2: the line is longer than 8 MiB" in run.stderr


def test_several_batches_in_order(submit: Submit) -> None:
    world.prompt_kind()
    run = submit.run("ticket.triage", "--input", "-", given=b"".join(b"%d\n" % n for n in range(1_203)))
    assert run.returncode == 0
    assert payloads(run) == list(range(1_203))
    assert b"Submitted 1,203 tasks" in run.stderr


def test_one_payload(submit: Submit) -> None:
    world.prompt_kind()
    run = submit.run("ticket.triage", "--payload", '{"text": "a"}')
    assert (run.returncode, run.stderr) == (0, b"")
    assert payloads(run) == [{"text": "a"}]
    bad = submit.run("ticket.triage", "--payload", "{")
    assert (bad.returncode, bad.stdout) == (2, b"")
    assert bad.stderr.startswith(b"--payload: this is not JSON: ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ticket.triag", "--payload", "1"), "There is no kind 'ticket.triag'; did you mean ticket.triage?"),
        (("ticket.triage", "--input", "no-such-file"), "no-such-file cannot be read: No such file or directory."),
        (("ticket.triage", "--input", "/"), "/ cannot be read: Is a directory."),
        (("ticket.triage",), "one of the arguments --input --payload is required"),
        (("ticket.triage", "--input", "-", "--payload", "1"), "not allowed with argument"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(submit: Submit, arguments: tuple[str, ...], told: str) -> None:
    world.prompt_kind()
    run = submit.run(*arguments)
    assert (run.returncode, run.stdout) == (2, b"")
    assert told in run.stderr.decode()
    assert b"Traceback" not in run.stderr
    assert not Task.objects.exists()


def test_a_program_that_writes_a_line_gets_its_id_at_once(submit: Submit) -> None:
    world.prompt_kind()
    with submit.started("ticket.triage", "--input", "-") as process:
        assert process.stdin and process.stdout
        for n in range(3):
            process.stdin.write(b"%d\n" % n)
            process.stdin.flush()
            assert Task.objects.get(pk=process.stdout.readline().decode().strip()).payload == n
        process.stdin.close()
        assert process.wait(30) == 0


def test_ctrl_c_keeps_what_was_submitted(submit: Submit) -> None:
    world.prompt_kind()
    with submit.started("ticket.triage", "--input", "-") as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(b"1\n")
        process.stdin.flush()
        first = process.stdout.readline().decode().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read().decode().endswith("Interrupted. Submitted 1 task of ticket.triage; they go on.\n")
    assert world.stored(UUID(first)).status == "ready"


def test_ids_that_nobody_reads(submit: Submit) -> None:
    world.prompt_kind()
    with submit.started("ticket.triage", "--input", "-") as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdout.close()
        process.stdin.write(b"1\n")
        process.stdin.flush()
        assert process.wait(30) == 1
        told = process.stderr.read().decode()
    assert "Nobody reads the ids any more. Submitted 1 task of ticket.triage" in told
    assert "Traceback" not in told
    assert "Exception ignored" not in told


def test_a_reader_that_leaves_is_told_how_many_there_are(submit: Submit) -> None:
    world.prompt_kind()
    lines = b"".join(b"%d\n" % n for n in range(20_000))
    run = submit.shell("ticket.triage --input - | head -1", lines)
    assert run.returncode == 1
    assert Task.objects.filter(pk=UUID(run.stdout.decode().strip())).exists()
    assert f"Submitted {Task.objects.count():,} tasks of ticket.triage; the rest" in run.stderr.decode()
    assert Task.objects.count() < 20_000


def test_ids_that_cannot_be_written(submit: Submit) -> None:
    world.prompt_kind()
    run = submit.shell("ticket.triage --input - >/dev/full", b"1\n2\n")
    assert run.returncode == 1
    told = "The ids cannot be written: No space left on device. Submitted 2 tasks of ticket.triage; the rest"
    assert run.stderr.decode().splitlines()[-1].startswith(told)
    assert b"Traceback" not in run.stderr
    assert Task.objects.count() == 2


def test_a_closed_output_is_refused_before_anything_is_submitted(submit: Submit) -> None:
    world.prompt_kind()
    run = submit.shell("ticket.triage --payload 1 >&-")
    assert run.returncode == 1
    assert run.stderr.decode().splitlines()[-1].startswith("CommandError: Nothing was submitted: the standard output")
    assert not Task.objects.exists()


def test_a_closed_input_is_a_sentence(submit: Submit) -> None:
    world.prompt_kind()
    run = submit.shell("ticket.triage --input - <&-")
    assert run.returncode == 2
    assert run.stderr.decode().splitlines()[-1].startswith("CommandError: The standard input is closed")


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_what_cannot_be_said_does_not_reach_the_ids(submit: Submit, stderr: str) -> None:
    world.prompt_kind()
    run = submit.shell(f"ticket.triage --input - {stderr}", b"1\nno json\n2\n")
    assert run.returncode == 2
    assert {UUID(line) for line in run.stdout.decode().split()} == set(Task.objects.values_list("pk", flat=True))
    assert Task.objects.count() == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_of_a_file_tells_what_is_committed(
    submit: Submit, tmp_path: Path, number: signal.Signals
) -> None:
    world.prompt_kind()
    file = tmp_path / "many.jsonl"
    file.write_text("1\n" * 100_000)
    with submit.started("ticket.triage", "--input", str(file)) as process:
        assert process.stdin and process.stdout and process.stderr
        first = process.stdout.readline().decode()
        process.send_signal(number)
        # Not communicate(), which knows nothing of what readline has taken in beyond its line.
        rest, stderr = process.stdout.read(), process.stderr.read()
        assert process.wait(30) == 128 + number
    count = 1 + len(rest.split())
    assert Task.objects.filter(pk=UUID(first.strip())).exists()
    assert Task.objects.count() == count
    assert 0 < count < 100_000
    assert f"Interrupted. Submitted {count:,} tasks of ticket.triage; they go on." in stderr.decode()


class TestWait:
    """--wait: until each task has ended or is held back."""

    @contextmanager
    def waiting(self, submit: Submit, given: bytes, count: int) -> Iterator[tuple[subprocess.Popen[bytes], list[UUID]]]:
        with submit.started("ticket.triage", "--input", "-", "--wait") as process:
            assert process.stdin and process.stdout
            process.stdin.write(given)
            process.stdin.close()
            process.stdin = None
            yield process, [UUID(process.stdout.readline().decode().strip()) for _ in range(count)]

    def end(self, process: subprocess.Popen[bytes], code: int, told: str) -> None:
        _, stderr = process.communicate(timeout=30)
        assert stderr.decode().splitlines()[-1] == told
        assert process.returncode == code

    def test_all_ended_well(self, submit: Submit) -> None:
        world.prompt_kind()
        with self.waiting(submit, b"1\n2\n3\n", 3) as (process, tasks):
            worker = world.worker()
            rows = lifecycle.claim(worker, 2, [])
            lifecycle.cancel([tasks[2]], actor="ana")
            assert process.poll() is None
            lifecycle.finish(worker, [world.succeeded(row) for row in rows])
            self.end(process, 0, "3 tasks: 1 cancelled, 2 succeeded.")

    def test_one_died(self, submit: Submit) -> None:
        world.prompt_kind()
        with self.waiting(submit, b"1\n2\n", 2) as (process, _):
            worker = world.worker()
            dead, well = lifecycle.claim(worker, 2, [])
            lifecycle.finish(worker, [world.failed(dead, "die", reason="not_retryable"), world.succeeded(well)])
            self.end(process, 1, "2 tasks: 1 dead (AI_UPSTREAM_5XX: 1), 1 succeeded. See /dead-letters/.")

    def test_the_rest_is_held_back(self, submit: Submit) -> None:
        kind = world.prompt_kind()
        with self.waiting(submit, b"1\n2\n3\n4\n", 4) as (process, tasks):
            worker = world.worker()
            (running,) = lifecycle.claim(worker, 1, [])
            retrying = next(task for task in tasks if task != running.task_id)
            Task.objects.filter(pk=retrying).update(parked_at=kind.created_at)
            lifecycle.hold_provider("p", by="redrive", reason="bad key", code="AI_AUTH_FAILED")
            # what runs is waited for, held back or not
            assert process.poll() is None
            lifecycle.finish(worker, [world.succeeded(running)])
            told = "4 tasks: 1 succeeded, 2 held back (provider p is held: AI_AUTH_FAILED), 1 held back (set aside)."
            self.end(process, 1, f"{told} See /kinds/.")

    def test_a_paused_kind_holds_back(self, submit: Submit) -> None:
        world.prompt_kind()
        lifecycle.pause_kind("ticket.triage", by="ana", reason="looking")
        run = submit.run("ticket.triage", "--input", "-", "--wait", given=b"1\nbroken\n")
        # a bad line is told before anything else
        assert run.returncode == 2
        assert (
            run.stderr.decode().splitlines()[-1] == "1 task: 1 held back (kind ticket.triage is paused). See /kinds/."
        )

    def test_a_cooling_provider_is_waited_for(self, submit: Submit) -> None:
        world.prompt_kind()
        with self.waiting(submit, b"1\n", 1) as (process, tasks):
            lifecycle.brakes.cool_providers({"p": (3600.0, "Retry-After")})
            told = self.read_until(process, b"No worker runs ticket.triage")
            assert told.endswith("the tasks wait. Start one with manage.py qcluster.")
            assert process.poll() is None
            lifecycle.cancel(tasks, actor="ana")
            self.end(process, 0, "1 task: 1 cancelled.")

    def read_until(self, process: subprocess.Popen[bytes], text: bytes) -> str:
        assert process.stderr
        for line in process.stderr:
            if text in line:
                return line.decode().rstrip()
        raise AssertionError(f"the command ended without {text!r}")

    def test_ctrl_c_while_waiting(self, submit: Submit) -> None:
        world.prompt_kind()
        with self.waiting(submit, b"1\n2\n", 2) as (process, tasks):
            self.read_until(process, b"Submitted 2 tasks")
            process.send_signal(signal.SIGINT)
            self.end(process, 130, "Interrupted. Submitted 2 tasks of ticket.triage; they go on.")
        assert {world.stored(task).status for task in tasks} == {"ready"}

    def test_the_database_may_go_and_come(self, submit: Submit) -> None:
        world.prompt_kind()
        with self.waiting(submit, b"1\n", 1) as (process, tasks):
            wait_until(lambda: cut_the_other_sessions(), "its session was cut")
            lifecycle.cancel(tasks, actor="ana")
            self.end(process, 0, "1 task: 1 cancelled.")


def cut_the_other_sessions() -> int:
    """Ends every other session on the test database; how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        (count,) = cursor.fetchone()
    return int(count)
