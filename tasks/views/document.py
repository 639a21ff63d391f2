"""Stored values as text for people: indented without recursion, masked, and bounded in every step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import UUID

from django.db import connection
from django.utils.translation import gettext as _

from tasks.errors.mask import mask

#: Characters of a text that are ever shown in one piece.
MOST_SHOWN = 200_000
#: Characters read and masked beyond those: a secret that lies across the cut is still seen whole, or not shown at all.
MARGIN = 4_000
#: Levels that are indented further; what lies deeper stands below each other.
DEEPEST_INDENT = 40

#: The first characters of a value, how many it has in all, and whether it is a text of its own rather than JSON.
HEAD = """
SELECT jsonb_typeof(value) = 'string', left(shown, %s), char_length(shown) FROM (
    SELECT {column} AS value, coalesce({column} #>> '{{}}', 'null') AS shown FROM tasks_task WHERE id = %s
) AS stored
"""
HEADS = {name: HEAD.format(column=name) for name in ("payload", "result")}
PIECE = re.compile(r'"(?:[^"\\]++|\\.)*"?|[\[{]\s*[\]}]|[\[\]{}]|,\s*|[^"\[\]{},]+', re.DOTALL)


def stored_text(task_id: UUID, name: str) -> str:
    """A task's ``payload`` or ``result`` as masked text, cut with a mark where it is longer than a page should hold.

    The database writes the JSON: no depth and no number is too much for it.
    """
    with connection.cursor() as cursor:
        cursor.execute(HEADS[name], [MOST_SHOWN + MARGIN, task_id])
        is_text, head, length = cursor.fetchone() or (True, "", 0)
    return masked_text(head if is_text else indented(head), length, whole=len(head) == length)


def masked_text(text: str, length: int | None = None, *, whole: bool = True) -> str:
    """``text`` masked, and cut with a mark. ``length``: of the value that it shows; ``whole``: whether it is all of it.

    No more than what is shown is masked, and a margin.
    """
    length = len(text) if length is None else length
    if len(text) > MOST_SHOWN + MARGIN:
        text, whole = text[: MOST_SHOWN + MARGIN], False
    text = mask(text)
    if not whole:
        text = text[:-MARGIN]
    elif len(text) <= MOST_SHOWN:
        return text
    return text[:MOST_SHOWN] + _("\n… (cut here; %(length)s characters in all)") % {"length": f"{length:,}"}


def indented(text: str) -> str:
    """JSON text, or the beginning of one, with each item on a line of its own; longer than is shown it does not get."""
    pieces: list[str] = []
    room = MOST_SHOWN + MARGIN + 1
    for piece in _pieces(text):
        pieces.append(piece)
        room -= len(piece)
        if room <= 0:
            break
    return "".join(pieces)


def _pieces(text: str) -> Iterator[str]:
    depth = 0
    for match in PIECE.finditer(text):
        piece = match[0]
        if piece in "[{":
            depth += 1
            yield piece + _line(depth)
        elif piece in "]}":
            depth -= 1
            yield _line(depth) + piece
        elif piece[0] == ",":
            yield "," + _line(depth)
        else:
            yield piece


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, DEEPEST_INDENT)
