"""What a reconcile function returns: ``done(result)``, ``not_done`` or ``still_unknown``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tasks.states import Truth


@dataclass(frozen=True, slots=True)
class Report:
    """The truth about work whose process vanished; with its result where it was done."""

    truth: Truth
    result: Any = None


def done(result: Any = None) -> Report:
    """The work was done: the task succeeds with ``result``, any JSON value."""
    return Report(Truth.DONE, result)


#: It was not done and will not be: the task runs again.
not_done = Report(Truth.NOT_DONE)
#: It may still happen, or cannot be seen just now: ask again later.
still_unknown = Report(Truth.STILL_UNKNOWN)
