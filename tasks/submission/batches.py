"""Payloads into tasks, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

from tasks.lifecycle import SubmitError, submit_many
from tasks.submission.lines import Line
from tasks.submission.payloads import BadLine, Payload, read_payload

BATCH = 500
#: Tells a person of a bad line: its number, and why it was not taken.
Complain = Callable[[int, str], None]


def batches(lines: Iterable[Line], complain: Complain) -> Iterator[list[Payload]]:
    """The payloads of the lines, at most ``BATCH`` at once; blank lines are skipped, bad ones complained about."""
    payloads = list(_payloads(lines, complain))
    for start in range(0, len(payloads), BATCH):
        yield payloads[start : start + BATCH]


def submit_batch(kind: str, batch: list[Payload], complain: Complain) -> list[UUID]:
    """Submit each payload as a task of ``kind``; their ids, in order, once they are committed.

    One transaction for the batch; payloads that are refused are left out and complained about.
    """
    try:
        return [task.pk for task in submit_many(kind, [payload.value for payload in batch])]
    except SubmitError as error:
        whole = dict.fromkeys(range(len(batch)), str(error))
        bad = {position: why.sentence for position, why in error.payloads.items()} or whole
    for position, why in bad.items():
        complain(batch[position].number, why)
    good = [payload for position, payload in enumerate(batch) if position not in bad]
    return submit_batch(kind, good, complain) if good else []


def _payloads(lines: Iterable[Line], complain: Complain) -> Iterator[Payload]:
    for line in lines:
        try:
            payload = read_payload(line)
        except BadLine as error:
            complain(line.number, str(error))
        else:
            if payload:
                yield payload
