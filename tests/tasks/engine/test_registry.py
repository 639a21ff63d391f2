"""Registering handlers and what is asked about their vanished work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tasks import handler, reconcile
from tasks.engine import registry

REGISTER = pytest.mark.parametrize("register", [handler, reconcile], ids=["handler", "reconcile"])


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_handlers", {})
    monkeypatch.setattr(registry, "_reconcilers", {})


@REGISTER
def test_a_function_stays_what_it_is(register: Callable[[str], Any]) -> None:
    def function(context: Any) -> int:
        return 7

    assert register("own")(function) is function
    assert register("own")(function) is function, "a module may be loaded twice"


@REGISTER
def test_a_name_is_for_one_function(register: Callable[[str], Any]) -> None:
    register("own")(lambda context: 1)

    def other(context: Any) -> None:
        """Another one."""

    with pytest.raises(ValueError, match=r"'own' is taken by .*<lambda>"):
        register("own")(other)


@REGISTER
def test_a_generator_is_refused(register: Callable[[str], Any]) -> None:
    def yields(context: Any) -> Iterator[int]:
        yield 1

    with pytest.raises(ValueError, match="is a generator; it must return its result"):
        register("own")(yields)


def test_both_have_the_same_name_whichever_comes_first() -> None:
    reconcile("own")(lambda context: None)
    handler("own")(lambda context: None)
    reconcile("orphan")(lambda context: None)
    assert (registry.names(), registry.reconcilers()) == (["own"], ["orphan", "own"])
    assert registry.find_reconciler("unknown") is None
