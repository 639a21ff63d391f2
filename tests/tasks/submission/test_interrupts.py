"""A Ctrl-C lets the block end first."""

import os
import signal

import pytest

from tasks.submission.interrupts import Interrupted, interrupt_afterwards, interruptible


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_block_ends_before_the_interrupt() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interrupt_afterwards():
        press()
        done.append("committed")
    assert done == ["committed"]


def test_a_second_press_comes_through_at_once() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interrupt_afterwards():
        press()
        press()
        done.append("never")
    assert done == []


def test_afterwards_all_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupt_afterwards():
        pass
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_interrupts_and_names_its_exit_code(number: signal.Signals) -> None:
    done = []
    with pytest.raises(Interrupted) as caught, interruptible(), interrupt_afterwards():
        os.kill(os.getpid(), number)
        done.append("committed")
    assert (done, caught.value.exit_code, caught.value.in_a_batch) == (["committed"], 128 + number, False)
    with pytest.raises(Interrupted), interruptible():
        os.kill(os.getpid(), number)
        signal.pause()


def test_what_comes_through_within_the_block_says_so() -> None:
    with pytest.raises(Interrupted) as caught, interrupt_afterwards():
        press()
        press()
    assert caught.value.in_a_batch


def test_a_hang_up_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible(), interrupt_afterwards():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
