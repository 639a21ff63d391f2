"""How fast a place is filled again: at once, then slower, so that a broken start makes no storm."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import psutil
import pytest

from tasks.engine.restart import delay_seconds, short_lives
from tests.cluster import BUSY_MACHINE
from tests.tasks.engine.tree import Tree, wait_until


@pytest.mark.parametrize(
    ("exit_code", "lives", "expected"),
    [
        (1, 0, 0.0),
        (1, 1, 0.0),
        (1, 2, 0.5),
        (1, 3, 1.0),
        (1, 4, 2.0),
        (1, 8, 30.0),
        (1, 10_000, 30.0),
        (-9, 0, 0.0),
        (-9, 1, 0.0),
        (-9, 4, 2.0),
        (-9, 10_000, 2.0),
        (0, 0, 1.0),
        (0, 1, 1.0),
        (-15, 1, 1.0),
        (-2, 5, 4.0),
        (0, 10_000, 30.0),
    ],
)
def test_delay(exit_code: int, lives: int, expected: float) -> None:
    assert delay_seconds(exit_code, lives) == expected


@pytest.mark.parametrize(("before", "lived", "expected"), [(0, 0.1, 1), (3, 9.9, 4), (3, 10.0, 0), (0, 500.0, 0)])
def test_short_lives_in_a_row(before: int, lived: float, expected: int) -> None:
    assert short_lives(before, lived) == expected


@pytest.mark.parametrize(("how", "first"), [("failing", 0.0), ("quitting", 1.0)])
def test_a_worker_that_cannot_start_is_tried_ever_more_slowly(
    plant: Callable[..., Tree], how: str, first: float
) -> None:
    tree = plant(STANDIN_WORKER=how, REDRIVE_WORKERS="1")
    wait_until(lambda: len(tree.events("born", "worker")) == 5, 20, "the fifth try")
    births = [line["at"] for line in tree.events("born", "worker")]
    gaps = [later - earlier for earlier, later in pairwise(births)]
    for gap, least in zip(gaps, [first, max(first, 0.5), 1.0, 2.0], strict=True):
        assert least <= gap < least + BUSY_MACHINE
    assert len(tree.pids("caretaker")) == 1, "the others work on"
    assert tree.main.poll() is None


def test_why_a_worker_failed_is_logged_without_its_secrets(plant: Callable[..., Tree]) -> None:
    tree = plant(STANDIN_WORKER="failing", REDRIVE_WORKERS="1")
    wait_until(lambda: "is no use here" in tree.errors.read_text(), 20, "the error in the log")
    assert "RuntimeError" in tree.errors.read_text()
    assert "abcdefghijklmnopqrstuvwxyz" not in tree.errors.read_text()


def test_a_place_is_kept_while_no_process_can_be_started(tree: Tree) -> None:
    """No file descriptors left for the sentinel: starting a process fails until there are some again."""
    sentinel = psutil.Process(tree.sentinel)
    plenty = sentinel.rlimit(psutil.RLIMIT_NOFILE)
    sentinel.rlimit(psutil.RLIMIT_NOFILE, (3, plenty[1]))
    victims = [tree.pids("worker")[0], tree.pids("caretaker")[0]]
    for victim in victims:
        tree.kill(victim)
    text = "No process could be started in place of "
    wait_until(lambda: {"worker", "caretaker"} <= named(tree, text), 5, "the failed starts")
    assert sentinel.is_running()
    sentinel.rlimit(psutil.RLIMIT_NOFILE, plenty)
    tree.wait_ready(seconds=4)
    assert not set(victims) & tree.members()


def named(tree: Tree, text: str) -> set[str]:
    """The roles that lines of the log name right after ``text``."""
    after = (line.partition(text)[2] for line in tree.errors.read_text().splitlines() if text in line)
    return {words.partition("-")[0] for words in after}


def test_a_sentinel_that_fails_drains_its_workers_and_main_ends_with_an_error(plant: Callable[..., Tree]) -> None:
    tree = plant(STANDIN_AFFINITY="unfit", STANDIN_BUSY="1")
    tree.wait_gone(20)
    assert tree.main.returncode == 1
    assert "The sentinel failed and stops its processes." in tree.errors.read_text()
    assert "The sentinel ended with exit code 1" in tree.errors.read_text()
    assert len(tree.events("stopped", "worker")) == 2
    assert len(tree.events("stopped", "caretaker")) == 1
