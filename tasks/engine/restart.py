"""How long a place in the tree stays empty after its process ended. Pure."""

from __future__ import annotations

from tasks.engine.process import CLEAN

#: A process that lived this long has started well: what ended it is no failure to start.
STEADY_SECONDS = 10.0
FIRST_SECONDS = 0.5
#: Longest waits: after a death by a signal (a killed process is replaced within 3 s), and after an exit by itself.
KILLED_LIMIT = 2.0
FAILED_LIMIT = 30.0
#: A process that stopped as if asked: the stop of the whole tree, sent to all of it at once, is probably on its way.
CLEAN_SECONDS = 1.0


def short_lives(before: int, lived_seconds: float) -> int:
    """How many processes in a row ended soon after their start, this one included."""
    return 0 if lived_seconds >= STEADY_SECONDS else before + 1


def delay_seconds(exit_code: int, lives: int) -> float:
    """How long to wait before the next process is started in this place.

    ``exit_code``: negative for a signal. ``lives``: short lives in a row. The first restart is immediate, the
    following ones wait 0.5, 1, 2 … seconds, so that a database that is missing makes no storm of forks.
    """
    doubled = FIRST_SECONDS * 2 ** min(lives - 2, 10) if lives >= 2 else 0.0
    if exit_code in CLEAN:
        return min(max(doubled, CLEAN_SECONDS), FAILED_LIMIT)
    return min(doubled, KILLED_LIMIT if exit_code < 0 else FAILED_LIMIT)
