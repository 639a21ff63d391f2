"""``ctx.log``: kept in order, bounded and without secrets, whatever becomes of the attempt."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tasks import lifecycle
from tasks.engine.log import ALL_BYTES, FULL, LINE_BYTES, MOST_LINES, Log
from tasks.lifecycle import End, LogLine
from tasks.models import Attempt, AttemptLog, Kind
from tasks.states import Outcome
from tests.cluster import QCluster, wait_until
from tests.tasks.lifecycle import world

WORKSHOP = "tests.tasks.engine.workshop"


def texts(log: Log) -> list[str]:
    return [line.text for line in log.waiting()]


class Silent:
    def __str__(self) -> str:
        raise RuntimeError("I do not speak")


class Changing(dict[str, int]):
    """As a dictionary that another thread fills while it is written down."""

    def items(self) -> NoReturn:  # type: ignore[override]
        raise RuntimeError("dictionary changed size during iteration")


LINES: dict[str, tuple[tuple[object, dict[str, object]], str]] = {
    "text": (("read it", {}), "read it"),
    "fields": (
        ("read", {"pages": 3, "by": "Ana", "ok": True, "cost": None}),
        "read  pages=3  by=Ana  ok=true  cost=null",
    ),
    "blanks": (("read", {"title": "two words", "empty": ""}), 'read  title="two words"  empty=""'),
    "values": (("read", {"ids": [1, 2], "of": {"a": "b"}}), 'read  ids=[1, 2]  of={"a": "b"}'),
    "secrets": (("sent", {"password": "hunter2secret"}), "sent  password=[masked]"),
    "a key": (("key sk-proj-abcdefghijklmnopqrstuvwxyz012345", {}), "key [masked]"),
    "NUL": (("a\x00b\ud800", {"c": "\x00"}), "a\ufffdb?  c="),
    "an object": ((Silent(), {"it": Silent()}), "<Silent that cannot be shown: RuntimeError>  it="),
    "what changes meanwhile": (("read", {"them": Changing(a=1)}), "read  them=Changing"),
    "a field named text": (("said", {"text": "x", "self": 1}), "said  text=x  self=1"),
}


@pytest.mark.parametrize(("given", "kept"), LINES.values(), ids=LINES.keys())
def test_a_line(given: tuple[object, dict[str, object]], kept: str) -> None:
    log = Log("shop", 1)
    log.write(given[0], given[1])  # type: ignore[arg-type]
    (line,) = texts(log)
    assert line.startswith(kept)
    assert "\x00" not in line


def test_a_long_line_is_cut_with_a_mark_and_no_secret_is_half_shown() -> None:
    log = Log("shop", 1)
    log.write("x" * (LINE_BYTES - 60) + " sk-proj-abcdefghijklmnopqrstuvwxyz012345 " + "y" * 5_000, {})
    (line,) = texts(log)
    assert len(line.encode()) <= LINE_BYTES
    assert line.rstrip().endswith("bytes in all]")
    assert "sk-proj" not in line


def test_an_attempt_has_room_for_so_many_lines() -> None:
    log = Log("shop", 1)
    for number in range(MOST_LINES + 100):
        log.write(f"line {number}", {})
    lines = log.waiting()
    assert [line.seq for line in lines] == list(range(1, MOST_LINES + 2))
    assert [line.text for line in lines[-2:]] == [f"line {MOST_LINES - 1}", FULL]


def test_an_attempt_has_room_for_so_much_text_and_says_once_that_it_is_full() -> None:
    log = Log("shop", 1)
    for _ in range(MOST_LINES):
        log.write("x" * 10_000, {})
        log.write("short", {})
    assert texts(log)[-1] == FULL
    assert texts(log).count(FULL) == 1
    assert sum(len(text.encode()) for text in texts(log)) <= ALL_BYTES + len(FULL)


def test_threads_write_beside_each_other() -> None:
    log = Log("shop", 1)

    def write() -> None:
        for number in range(100):
            log.write(f"line {number}", {})

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [line.seq for line in log.waiting()] == list(range(1, MOST_LINES + 2))


def test_what_is_stored_is_not_offered_again() -> None:
    log = Log("shop", 1)
    for text in "abc":
        log.write(text, {})
    log.stored(2)
    assert texts(log) == ["c"]


def test_pythons_own_log_has_the_line_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tasks.handler"):
        Log("shop", 1).write("sent", {"password": "hunter2secret"})
    assert caplog.messages == ["shop 1: sent  password=[masked]"]


# --- in the database --------------------------------------------------------------------------------------------------


def line(seq: int, text: str = "a line") -> LogLine:
    return LogLine(seq=seq, written=0.0, text=text)


def stored(attempt_id: int) -> list[str]:
    return list(AttemptLog.objects.filter(attempt=attempt_id).order_by("seq").values_list("text", flat=True))


@pytest.mark.django_db
def test_lines_come_once_however_often_they_are_sent() -> None:
    """A tick whose answer was lost is repeated, and the end of the attempt brings the same lines."""
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lines = [(row.attempt_id, line(1, "one")), (row.attempt_id, line(2, "two"))]
    lifecycle.keep_log(lines)
    lifecycle.keep_log(lines)
    end = End(
        task_id=row.task_id,
        attempt_id=row.attempt_id,
        outcome=Outcome.SUCCEEDED,
        result_text="1",
        log=(line(2, "two"), line(3, "three")),
    )
    assert lifecycle.finish(worker, [end]).won == {row.attempt_id}
    assert stored(row.attempt_id) == ["one", "two", "three"]


@pytest.mark.django_db
def test_the_lines_of_an_end_that_is_refused_are_kept() -> None:
    """What a worker that was taken for lost saw may be all that tells why."""
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    end = End(
        task_id=row.task_id, attempt_id=row.attempt_id, outcome=Outcome.SUCCEEDED, result_text="1", log=(line(1),)
    )
    assert lifecycle.finish(worker + 1, [end]).refused == {row.attempt_id}
    assert stored(row.attempt_id) == ["a line"]
    assert world.stored(row.task_id).status == "running"


@pytest.mark.django_db
def test_lines_of_an_attempt_that_is_gone_harm_no_others() -> None:
    worker = world.worker()
    (row,) = world.claimed(world.prompt_kind(), worker)
    lifecycle.keep_log([(row.attempt_id + 99, line(1)), (row.attempt_id, line(1))])
    assert stored(row.attempt_id) == ["a line"]
    assert AttemptLog.objects.count() == 1


@pytest.mark.django_db
def test_one_statement_for_all_lines_and_none_for_none() -> None:
    worker = world.worker()
    rows = world.claimed(world.prompt_kind(), worker, 5)

    def cost(log: Callable[[int], tuple[LogLine, ...]]) -> int:
        ends = [world.succeeded(row) for row in rows]
        with CaptureQueriesContext(connection) as queries:
            lifecycle.keep_log([(end.attempt_id, each) for end in ends for each in log(end.attempt_id)])
        return len(queries)

    assert cost(lambda attempt: ()) == 0
    assert cost(lambda attempt: tuple(line(seq) for seq in range(1, 100))) == 1
    assert AttemptLog.objects.count() == 5 * 99


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["succeed", "fail", "die"])
def test_a_real_worker_stores_lines_while_it_runs_and_with_the_end(
    test_database_url: str, tmp_path: Path, how: str
) -> None:
    """Also of an attempt that failed, and of one whose process was killed."""
    Kind.objects.create(name="tell", handler="workshop.tell", max_attempts=1, safe_to_rerun=False)
    until = tmp_path / "until"
    with QCluster(test_database_url, REDRIVE_APPS=WORKSHOP, REDRIVE_WORKERS=1) as cluster:
        cluster.wait_ready()
        task = lifecycle.submit("tell", {"piece": "oak board", "until": str(until)})
        wait_until(lambda: AttemptLog.objects.count() == 2, "the lines of the running attempt")
        assert world.stored(task.id).status == "running"
        (tmp_path / "how").write_text(how)
        (tmp_path / "how").rename(until)
        ends = {"succeed": "succeeded", "fail": "dead", "die": "dead"}
        wait_until(lambda: world.stored(task.id).status == ends[how], "its end", 60)
    attempt = Attempt.objects.get()
    first = ['begun  piece="oak board"  password=[masked]', "two\nlines of \ufffd text"]
    assert stored(attempt.pk) == (first if how == "die" else [*first, "the last words"])
    times = list(AttemptLog.objects.order_by("seq").values_list("at", flat=True))
    assert times == sorted(times)
    assert all(at >= attempt.started_at for at in times)
