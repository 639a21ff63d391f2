"""The one recorder of deaths: ``deadletters`` registers it, the lifecycle calls it inside its transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from tasks.states import Status


class Recorder(Protocol):
    """Writes and closes dead letters. Called in the transaction of the move, with the rows already updated."""

    def record_deaths(self, task_ids: Sequence[UUID]) -> None:
        """Write one open letter for each task that has just died; close the letter its cycle came from."""

    def record_ends(self, ends: Sequence[tuple[UUID, Status]]) -> None:
        """Settle the letters of tasks that, in a second or later cycle, succeeded or were cancelled."""


_recorders: list[Recorder] = []


def register_recorder(recorder: Recorder) -> None:
    """Make ``recorder`` the one that writes letters. A second one is reported by the system checks."""
    _recorders.append(recorder)


def registered_recorders() -> tuple[Recorder, ...]:
    """All that registered, for the system check; exactly one is right."""
    return tuple(_recorders)


def recorder() -> Recorder:
    """The registered recorder. Raises RuntimeError when there is not exactly one: a death would go unrecorded."""
    if len(_recorders) != 1:
        raise RuntimeError(f"{len(_recorders)} recorders of dead letters are registered; exactly one is needed.")
    return _recorders[0]
