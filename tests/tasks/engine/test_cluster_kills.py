"""SIGKILL to each process of the tree: a child is replaced, the tree is never left half."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from tests.cluster import BUSY_MACHINE
from tests.tasks.engine.tree import Tree, wait_until

REPLACED_WITHIN = 3.0


@pytest.mark.parametrize("role", ["worker", "caretaker"])
def test_a_killed_child_is_replaced_and_the_others_live_on(tree: Tree, role: str) -> None:
    victim, others = tree.pids(role)[0], tree.members()
    tree.kill(victim)
    wait_until(lambda: victim not in tree.members(), 2, "the victim's end")
    wait_until(lambda: len(tree.pids(role)) == len(tree.events("ready", role)) - 1, REPLACED_WITHIN, "a replacement")
    tree.wait_ready(seconds=REPLACED_WITHIN)
    assert others - {victim} < tree.members()
    assert "exit code -9" in tree.errors.read_text()


def test_a_place_that_is_killed_again_and_again_is_refilled_within_3_seconds(tree: Tree) -> None:
    for _ in range(4):
        victim = tree.pids("worker")[-1]
        tree.kill(victim)
        wait_until(lambda gone=victim: gone not in tree.members(), 2, "the victim's end")
        tree.wait_ready(seconds=REPLACED_WITHIN)


def test_the_death_of_the_sentinel_ends_the_tree_with_an_error(tree: Tree) -> None:
    tree.kill(tree.sentinel)
    tree.wait_gone(3)
    assert tree.main.returncode == 1
    assert "The sentinel ended with exit code -9" in tree.errors.read_text()


def test_the_death_of_main_leaves_no_orphan(tree: Tree) -> None:
    before = tree.members()
    tree.kill(tree.main.pid)
    tree.wait_gone(2)
    assert len(before) == 5  # main, sentinel, two workers, caretaker


def test_a_stopped_worker_dies_with_main(tree: Tree) -> None:
    tree.kill(tree.pids("worker")[0], signal.SIGSTOP)
    tree.kill(tree.main.pid)
    tree.wait_gone(2)


def test_a_worker_that_is_asked_to_stop_alone_is_replaced_after_a_second(tree: Tree) -> None:
    asked = tree.pids("worker")[0]
    at = tree.kill(asked, signal.SIGTERM)
    wait_until(lambda: len(tree.events("born", "worker")) == 3, 4, "a replacement")
    assert tree.events("born", "worker")[-1]["at"] - at >= 1.0
    assert tree.events("stopped", "worker")[0]["pid"] == asked
    assert "ended with exit code" not in tree.errors.read_text()


def test_the_sentinel_outlives_the_stop_signals(tree: Tree) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        tree.kill(tree.sentinel, number)
    victim = tree.pids("worker")[0]
    tree.kill(victim)
    wait_until(lambda: victim not in tree.members(), 2, "the victim's end")
    tree.wait_ready(seconds=REPLACED_WITHIN)
    os.kill(tree.sentinel, 0)
    assert tree.main.poll() is None


def test_a_cluster_without_a_database_guards_its_processes(tree: Tree) -> None:
    """The deaths cannot be written down: they are tried again, and the guard waits for nothing."""
    for _ in range(2):
        victim = tree.pids("worker")[0]
        tree.kill(victim)
        wait_until(lambda gone=victim: gone not in tree.members(), 2, "the victim's end")
        started = time.monotonic()
        tree.wait_ready(seconds=REPLACED_WITHIN)
        assert time.monotonic() - started < REPLACED_WITHIN + BUSY_MACHINE
    wait_until(
        lambda: tree.errors.read_text().count("could not be written down yet") >= 2, 8, "a second try to write them"
    )


def test_deaths_that_cannot_be_written_do_not_hold_up_the_stop(plant: Callable[..., Tree]) -> None:
    """They are waited for while they are being written, not for the whole drain while the database is away."""
    tree = plant(REDRIVE_DRAIN_SECONDS="60")
    tree.wait_ready()
    tree.kill(tree.pids("worker")[0])
    wait_until(lambda: "could not be written down yet" in tree.errors.read_text(), 5, "the failure to write it down")
    tree.wait_ready()
    tree.kill(tree.main.pid, signal.SIGTERM)
    tree.wait_gone(10)
