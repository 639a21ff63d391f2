"""Trees of real processes, destroyed when their test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tasks.engine.tree import Tree


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Callable[..., Tree]]:
    """Start a tree of stand-ins; keyword arguments are environment variables."""
    trees: list[Tree] = []

    def start(**environment: str) -> Tree:
        folder = tmp_path / f"tree{len(trees)}"
        folder.mkdir()
        trees.append(Tree(folder, **environment))
        return trees[-1]

    yield start
    for tree in trees:
        tree.destroy()


@pytest.fixture
def tree(plant: Callable[..., Tree]) -> Tree:
    """A tree of two idle workers and a caretaker, ready."""
    started = plant()
    started.wait_ready()
    return started
