"""The watchdog of the event loop: what it kills, and what it lets live."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from tasks.engine.timer import Timer
from tests.tasks.engine.tree import Tree, wait_until


def test_a_blocked_event_loop_is_killed_and_replaced(tree: Tree) -> None:
    victim = tree.pids("worker")[0]
    at = tree.kill(victim, signal.SIGUSR1)
    wait_until(lambda: victim not in tree.members(), 5, "the end of the blocked worker")
    assert time.monotonic() - at >= 1.5, "the watchdog is set to 2 s"
    tree.wait_ready(seconds=3)
    assert f"{victim} is blocked; it is killed" in tree.errors.read_text()


def test_a_blocked_event_loop_does_not_hold_up_the_stop(plant: Callable[..., Tree]) -> None:
    tree = plant(REDRIVE_WATCHDOG_SECONDS="60", REDRIVE_DRAIN_SECONDS="0")
    tree.wait_ready()
    tree.kill(tree.pids("worker")[0], signal.SIGUSR1)
    tree.kill(tree.main.pid, signal.SIGTERM)
    tree.wait_gone(5)
    assert tree.main.returncode == 0


def test_a_worker_frozen_for_less_than_the_watchdog_lives(plant: Callable[..., Tree]) -> None:
    tree = plant(REDRIVE_WATCHDOG_SECONDS="3")
    tree.wait_ready()
    before = tree.pids("worker")
    tree.kill(before[0], signal.SIGSTOP)
    time.sleep(1.5)  # the length of the freeze is what is tested
    tree.kill(before[0], signal.SIGCONT)
    time.sleep(2.5)  # past the time at which the watchdog would have bitten
    assert tree.pids("worker") == before


def test_a_worker_frozen_for_longer_is_replaced(tree: Tree) -> None:
    victim = tree.pids("worker")[0]
    tree.kill(victim, signal.SIGSTOP)
    wait_until(lambda: victim not in tree.members(), 5, "the end of the frozen worker")
    tree.wait_ready(seconds=3)


@pytest.mark.parametrize("times", range(3))
def test_a_freeze_of_the_whole_tree_kills_nobody(tree: Tree, times: int) -> None:
    """As of a paused container: the guard wakes first and must not take the others' silence for their fault."""
    workers = tree.pids("worker")
    children = [*workers, tree.sentinel]
    for pid in children:
        tree.kill(pid, signal.SIGSTOP)
    time.sleep(3)  # longer than the watchdog's 2 s
    tree.kill(tree.sentinel, signal.SIGCONT)
    # The sentinel is awake, and has looked at the clock, before any worker is.
    wait_until(lambda: "the watchdogs start anew" in tree.errors.read_text(), 3, "the guard's notice of its own freeze")
    for pid in workers:
        tree.kill(pid, signal.SIGCONT)
    time.sleep(2.5)  # past the time at which the watchdog would have bitten
    assert tree.pids("worker") == workers
    assert "is blocked" not in tree.errors.read_text()


def test_a_recycled_worker_is_replaced_at_once(tree: Tree) -> None:
    recycled = tree.pids("worker")[0]
    at = tree.kill(recycled, signal.SIGUSR2)
    wait_until(lambda: len(tree.events("born", "worker")) == 3, 3, "the fresh worker")
    assert tree.events("born", "worker")[-1]["at"] - at < 1.0
    assert tree.events("recycled", "worker")[0]["pid"] == recycled
    wait_until(lambda: "recycled worker" in tree.errors.read_text(), 2, "a word about it in the log")


def test_the_timer_counts_by_the_clock_alone() -> None:
    timer = Timer(30)
    assert timer.value > 50, "time to start in"
    timer.feed()
    timer.value -= 25
    assert 20 < timer.value <= 30, "the guard's own countdown has no effect"
    timer = Timer(0.3)
    timer.feed()
    wait_until(lambda: timer.value == 0, 1, "the end of its time")
    timer.feed()
    assert timer.value > 0
    with timer.get_lock(), timer.get_lock():
        timer.recycle()
    timer.grant()
    assert timer.value == -2
