"""Which tickets of the demo meet which fault: a fixed table, so that the same ticket always has the same story.

A fault is met in a task's first cycle only: reprocessed, the task succeeds. No fault holds the provider (a bad key, a
used-up quota), because everything else would wait for a person. Within the first thirty tickets there is one of each
sort, for whoever starts the demo and watches; after that about one ticket in twenty-five dies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tasks.demo.chat import Call

TICKET = re.compile(r"\bT-(\d{4})\b")
LATER = range(31, 201)


@dataclass(frozen=True)
class Staged:
    """A fault by its name; ``times`` is how many calls of the task meet it, None: all of the first cycle."""

    fault: str
    times: int | None = None
    retry_after: str | None = None


RATE_LIMIT = Staged("rate_limit_retry_after", times=1, retry_after="1")
FIRST_THIRTY = {
    3: RATE_LIMIT,
    5: Staged("wrong_schema"),
    8: Staged("error_500", times=1),
    11: Staged("content_filter_400"),
    14: Staged("stream_cut", times=1),
    17: Staged("error_500"),
    20: Staged("error_503_retry_after", times=1, retry_after="2"),
    23: Staged("length"),
    26: Staged("repaired"),
    29: Staged("no_finish_reason", times=1),
}
DEADLY = ("content_filter_finish", "error_503", "wrong_schema", "length", "context_too_long", "html_502", "empty")
PASSING = (
    Staged("error_500", times=1),
    RATE_LIMIT,
    Staged("html_502", times=1),
    Staged("repaired"),
    Staged("rate_limit_plain", times=1),
    Staged("reset", times=1),
    Staged("fenced_json"),
    Staged("error_in_200", times=1),
)


def _table() -> dict[int, Staged]:
    deadly = {number: Staged(DEADLY[place % len(DEADLY)]) for place, number in enumerate(LATER[6::25])}
    passing = {number: PASSING[place % len(PASSING)] for place, number in enumerate(LATER[2::8])}
    return {**FIRST_THIRTY, **passing, **deadly}


TABLE = _table()


def staged_fault(call: Call) -> Staged | None:
    """The fault that this call meets, or None: all is well."""
    found = TICKET.search(call.prompt)
    staged = TABLE.get(int(found[1])) if found and call.cycle == 1 else None
    if staged is None or (staged.times is not None and call.number > staged.times):
        return None
    if staged.fault == "wrong_schema" and call.schema is None:
        return Staged("content_filter_finish")  # Only an answer with a schema can be against it.
    return staged
