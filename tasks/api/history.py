"""What streams read, each in a thread with a connection of the pool that goes back at once."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, connection, connections

from tasks.api.auth import find_key
from tasks.api.state import FIELDS, told
from tasks.api.watch import News
from tasks.models import ApiKey, Task

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
#: Moves that a stream begins with, or that one look brings of a task, at most: the newest of them.
MOST_MOVES = 1_000
FIELDS_OF_A_MOVE = ("task_id", "seq", "at", "type", "from_status", "to_status", "cycle")

NEWER = """
SELECT task_id, seq, at, type, from_status, to_status, cycle FROM (
    SELECT e.*, row_number() OVER (PARTITION BY e.task_id ORDER BY e.seq DESC) AS place
    FROM unnest(%(ids)s::uuid[], %(seqs)s::int[]) AS known(task_id, seq)
    JOIN tasks_taskevent e ON e.task_id = known.task_id AND e.seq > known.seq
) AS newer WHERE place <= %(most)s ORDER BY task_id, seq
"""


class Refused(Exception):
    """A stream that is not opened: the HTTP status, and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class Opened:
    """What a stream begins with."""

    key_id: int
    state: dict[str, Any]
    moves: list[dict[str, Any]]


def in_a_thread(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """``function`` for coroutines. Outside Django's requests nobody else gives a connection back."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        finally:
            connections.close_all()

    return sync_to_async(called, thread_sensitive=False)


@in_a_thread
def open_stream(token: str, task_id: UUID, after: int | None) -> Opened:
    """The state of the task, and its moves after the one named. Raises Refused."""
    try:
        key = find_key(token) if token else None
        if key is None:
            raise Refused(401, "Send 'Authorization: Bearer KEY' with a key that was made by 'manage.py createapikey'.")
        row = Task.objects.filter(pk=task_id).values(*FIELDS).first()
        if row is None:
            raise Refused(404, "There is no such task.")
        moves = [] if after is None else _newer({task_id: after}).get(task_id, [])
    except (OperationalError, InterfaceError) as error:
        logger.warning("A stream was not opened: %s", error)
        raise Refused(503, "The database cannot be reached. Try again.") from error
    # A move between the two reads is in the history already: the watch must not tell of it again.
    (state,) = told([row])
    state["event_seq"] = max([state["event_seq"], *(move["seq"] for move in moves)])
    return Opened(key.pk, state, moves)


@in_a_thread
def look(known: Mapping[UUID, int]) -> dict[UUID, News]:
    """The state of each task, and what moved it since; three queries for all."""
    states = told(Task.objects.filter(pk__in=list(known)).values(*FIELDS))
    moved = {state["id"]: known[state["id"]] for state in states if state["event_seq"] > known[state["id"]]}
    moves = _newer(moved) if moved else {}
    return {state["id"]: News(state, moves.get(state["id"], [])) for state in states}


@in_a_thread
def still_allowed(key_id: int) -> bool:
    """Whether the key is usable; while the database is away nothing is taken back."""
    try:
        return ApiKey.objects.usable().filter(pk=key_id).exists()
    except (OperationalError, InterfaceError):
        return True


def _newer(known: Mapping[UUID, int]) -> dict[UUID, list[dict[str, Any]]]:
    with connection.cursor() as cursor:
        cursor.execute(NEWER, {"ids": list(known), "seqs": list(known.values()), "most": MOST_MOVES})
        rows = cursor.fetchall()
    found: dict[UUID, list[dict[str, Any]]] = {}
    for task_id, *values in rows:
        found.setdefault(task_id, []).append(dict(zip(FIELDS_OF_A_MOVE[1:], values, strict=True)))
    return found
