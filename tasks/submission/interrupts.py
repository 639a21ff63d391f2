"""A stop between two batches, never within one: what is committed is also told."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Ctrl-C, a service manager, a terminal that was closed.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal asked to stop. ``in_a_batch``: it came through while a batch was under way."""

    def __init__(self, number: int, *, in_a_batch: bool = False) -> None:
        super().__init__(number)
        self.exit_code = 128 + number
        self.in_a_batch = in_a_batch


@contextmanager
def interruptible() -> Iterator[None]:
    """While the block runs each of the signals raises Interrupted; but a hang-up that nohup ignores stays ignored."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    wanted = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in wanted}
    try:
        yield
    finally:
        _restore(before)


@contextmanager
def interrupt_afterwards() -> Iterator[None]:
    """Hold the signals back while the block runs, and raise Interrupted at its end. A second one comes through."""
    pressed = 0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise Interrupted(number, in_a_batch=True)
        pressed = number

    wanted = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in wanted}
    try:
        yield
    finally:
        _restore(before)
    if pressed:
        raise Interrupted(pressed)


def _restore(before: dict[signal.Signals, signal._HANDLER]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)
