"""SIGTERM and SIGINT, to main and to the group, idle and busy: gone within the drain time and 5 s, exit code 0."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from tests.cluster import BUSY_MACHINE
from tests.tasks.engine.tree import Tree, wait_until

DRAIN = 2.0


def stop(tree: Tree, to: str, number: signal.Signals = signal.SIGTERM) -> float:
    """Send the signal; seconds until everything was gone."""
    if to == "main":
        tree.kill(tree.main.pid, number)
    else:
        os.killpg(tree.main.pid, number)
    return tree.wait_gone(DRAIN + 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("to", ["main", "group"])
def test_an_idle_tree_does_not_wait_for_the_drain(plant: Callable[..., Tree], to: str, number: signal.Signals) -> None:
    tree = plant(REDRIVE_DRAIN_SECONDS="60")
    tree.wait_ready()
    stop(tree, to, number)
    assert tree.main.returncode == 0
    assert len(tree.events("stopped", "worker")) == 2
    assert len(tree.events("stopped", "caretaker")) == 1
    assert len(tree.events("born")) == 3, "nobody was replaced during the stop"


@pytest.mark.parametrize("to", ["main", "group"])
def test_busy_workers_drain(plant: Callable[..., Tree], to: str) -> None:
    tree = plant(STANDIN_BUSY="1.5", REDRIVE_DRAIN_SECONDS=str(DRAIN))
    tree.wait_ready()
    assert 1.5 <= stop(tree, to) < DRAIN + 2 + BUSY_MACHINE
    assert tree.main.returncode == 0
    assert len(tree.events("stopped", "worker")) == 2
    assert len(tree.events("born")) == 3


def test_the_caretaker_stops_after_the_workers(plant: Callable[..., Tree]) -> None:
    tree = plant(STANDIN_BUSY="1")
    tree.wait_ready()
    stop(tree, "main")
    last_worker = max(line["at"] for line in tree.events("stopped", "worker"))
    assert tree.events("stopped", "caretaker")[0]["at"] > last_worker


@pytest.mark.parametrize("to", ["main", "group"])
def test_workers_that_do_not_stop_are_killed(plant: Callable[..., Tree], to: str) -> None:
    tree = plant(STANDIN_WORKER="stubborn", REDRIVE_DRAIN_SECONDS="0.5")
    tree.wait_ready()
    assert 3.5 <= stop(tree, to) < 5.5 + BUSY_MACHINE
    assert tree.main.returncode == 0
    assert tree.errors.read_text().count("did not stop in time") == 2


def test_a_worker_killed_during_the_drain_is_not_replaced(plant: Callable[..., Tree]) -> None:
    tree = plant(STANDIN_BUSY="1.5")
    tree.wait_ready()
    tree.kill(tree.main.pid, signal.SIGTERM)
    wait_until(lambda: len(tree.events("signalled", "worker")) == 2, 5, "the signal's arrival")
    tree.kill(tree.pids("worker")[0])
    tree.wait_gone(DRAIN + 5)
    assert len(tree.events("born")) == 3
    assert len(tree.events("stopped", "worker")) == 1
    assert tree.main.returncode == 0


def test_a_frozen_sentinel_does_not_keep_main(plant: Callable[..., Tree]) -> None:
    tree = plant(REDRIVE_DRAIN_SECONDS="0")
    tree.wait_ready()
    tree.kill(tree.sentinel, signal.SIGSTOP)
    assert stop(tree, "main") < 5 + BUSY_MACHINE
    assert "The sentinel did not stop in time" in tree.errors.read_text()


def test_a_stop_while_the_tree_is_being_born(plant: Callable[..., Tree]) -> None:
    tree = plant(REDRIVE_WORKERS="4")
    wait_until(lambda: tree.events("born"), 20, "the first child")
    assert stop(tree, "group") < 3 + BUSY_MACHINE
    assert tree.main.returncode == 0


def test_a_stop_that_is_asked_for_twice(plant: Callable[..., Tree]) -> None:
    tree = plant(STANDIN_BUSY="1")
    tree.wait_ready()
    tree.kill(tree.main.pid, signal.SIGTERM)
    wait_until(lambda: len(tree.events("signalled", "worker")) == 2, 5, "the signal's arrival")
    started = time.monotonic()
    assert stop(tree, "group") < DRAIN + BUSY_MACHINE
    assert time.monotonic() - started < DRAIN + BUSY_MACHINE
    assert tree.main.returncode == 0
    assert len(tree.events("stopped", "worker")) == 2


def test_signals_that_keep_coming_do_not_change_the_exit_code(tree: Tree) -> None:
    """Also while the interpreter shuts down, when Python has let go of its signal handlers."""

    def signal_again() -> bool:
        if tree.main.poll() is None:
            tree.main.send_signal(signal.SIGTERM)
        return tree.main.poll() is not None

    wait_until(signal_again, DRAIN + 5, "the end of main")
    assert tree.main.returncode == 0
