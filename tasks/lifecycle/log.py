"""The lines that handlers write: appended in bulk, beside their attempts, whatever becomes of these."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

# A line that is stored already comes again where the answer was lost, and with the end of its attempt: it stands once.
# The attempt may be gone with its task.
KEEP = """
INSERT INTO tasks_attemptlog (attempt_id, seq, at, text)
SELECT l.attempt_id, l.seq, now() - make_interval(secs => l.age), l.text
FROM jsonb_to_recordset(%s::jsonb) AS l(attempt_id bigint, seq int, age float8, text text)
JOIN tasks_attempt a ON a.id = l.attempt_id
ON CONFLICT (attempt_id, seq) DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of an attempt. ``seq`` from 1; ``written``: monotonic; ``text``: masked, storable."""

    seq: int
    written: float
    text: str


def keep_log(lines: Sequence[tuple[int, LogLine]]) -> None:
    """Store lines, each with the id of its attempt, in one statement; none where there are none."""
    if not lines:
        return
    now = time.monotonic()
    rows = [
        {"attempt_id": attempt_id, "seq": line.seq, "age": max(0.0, now - line.written), "text": line.text}
        for attempt_id, line in lines
    ]
    with connection.cursor() as cursor:
        cursor.execute(KEEP, [json.dumps(rows)])
