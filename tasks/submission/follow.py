"""Following many tasks to their ends, with reads whose size does not grow with their number."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from tasks.models import Kind, Task, WorkerProcess
from tasks.states import FINAL, Status

#: Tasks asked for in one query, and queries in one look.
CHUNK = 1_000
CHUNKS_A_LOOK = 10
#: Error codes named in a summary; the others are counted together.
CODES_TOLD = 5
#: The status of a task whose row is gone.
DELETED = "deleted"
#: What a look reads of each task.
COLUMNS = (
    *("status", "reason", "error_code", "parked_at", "kind_id", "kind__paused_at"),
    *("lane__provider_id", "lane__provider__held_at", "lane__provider__hold_code"),
)
#: From these a task goes on only if nothing holds it back.
HELD_FROM = frozenset({Status.SCHEDULED, Status.READY, Status.RETRYABLE})


@dataclass
class Chunk:
    """Some of the tasks: those that have not ended, and why how many of them are held back, as last seen."""

    open: list[UUID]
    held: Counter[str] = field(default_factory=Counter)

    @property
    def settled(self) -> bool:
        """Whether no task of it will move by itself."""
        return self.held.total() == len(self.open)


class Follower:
    """Counts the ends of ``ids``. A task is over once it has ended, or as long as it is held back.

    Held back: not running, and its kind is paused, its provider held, or it is set aside. A provider that cools is
    waited for. ``ended`` counts by status; a task whose row is gone counts as ``deleted``. ``codes`` counts the dead by
    error code, or by reason where the death has no code.
    """

    def __init__(self, ids: Iterable[UUID]) -> None:
        every = list(ids)
        self.total = len(every)
        self.ended: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self._chunks = deque(Chunk(every[start : start + CHUNK]) for start in range(0, len(every), CHUNK))

    @property
    def held(self) -> Counter[str]:
        """How many tasks are held back, by reason."""
        return sum((chunk.held for chunk in self._chunks), Counter())

    @property
    def over(self) -> bool:
        """Whether each task has ended or is held back."""
        return all(chunk.settled for chunk in self._chunks)

    @property
    def failed(self) -> bool:
        """Whether a task died or is held back."""
        return bool(self.ended[Status.DEAD] or self.held)

    def look(self) -> None:
        """Read where the next tasks stand, a bounded number of them; all get their turn."""
        for _ in range(min(CHUNKS_A_LOOK, len(self._chunks))):
            chunk = self._chunks[0]
            self._read(chunk)
            self._chunks.popleft()  # only now: a read that fails must not lose it
            if chunk.open:
                self._chunks.append(chunk)

    def summary(self) -> str:
        """One line: how many of how many, by status, and why tasks died or are held back."""
        counts = [
            f"{count:,} {status}{f' ({self._causes()})' if status == Status.DEAD else ''}"
            for status, count in sorted(self.ended.items())
        ]
        counts += [f"{count:,} held back ({reason})" for reason, count in sorted(self.held.items())]
        left = self.total - self.ended.total() - self.held.total()
        counts += [f"{left:,} not ended"] if left else []
        return f"{self.total:,} task{'s' * (self.total != 1)}: {', '.join(counts) or 'none'}"

    def _causes(self) -> str:
        """The most frequent error codes of the dead, most frequent first."""
        most = sorted(self.codes.items(), key=lambda item: (-item[1], item[0]))
        told = [f"{code}: {count:,}" for code, count in most[:CODES_TOLD]]
        others = sum(count for _, count in most[CODES_TOLD:])
        return ", ".join([*told, f"others: {others:,}"] if others else told)

    def _read(self, chunk: Chunk) -> None:
        rows = {row["pk"]: row for row in Task.objects.filter(pk__in=chunk.open).values("pk", *COLUMNS)}
        remaining, chunk.held = [], Counter()
        for task_id in chunk.open:
            row = rows.get(task_id, {"status": DELETED})
            if row["status"] in FINAL or row["status"] == DELETED:
                self._count_end(row)
                continue
            remaining.append(task_id)
            if row["status"] in HELD_FROM and (reason := _why_held(row)):
                chunk.held[reason] += 1
        chunk.open = remaining

    def _count_end(self, row: dict[str, Any]) -> None:
        self.ended[row["status"]] += 1
        if row["status"] == Status.DEAD:
            self.codes[row["error_code"] or row["reason"]] += 1


def _why_held(row: dict[str, Any]) -> str:
    if row["parked_at"]:
        return "set aside"
    if row["kind__paused_at"]:
        return f"kind {row['kind_id']} is paused"
    if not row["lane__provider__held_at"]:
        return ""
    code = row["lane__provider__hold_code"]
    return f"provider {row['lane__provider_id']} is held{f': {code}' if code else ''}"


def someone_runs(kind: str) -> bool:
    """Whether a live worker process can run tasks of the kind."""
    live = WorkerProcess.objects.filter(
        role="worker", lost_at__isnull=True, stopped_at__isnull=True, lease_until__gt=Now()
    )
    handler = Kind.objects.values_list("handler", flat=True).get(pk=kind)
    return (live.filter(handlers__contains=[handler]) if handler else live).exists()
