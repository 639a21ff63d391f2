"""A replay: the open letters that a filter finds, oldest first, in batches that each commit by themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Count

from deadletters import triage
from deadletters.querysets import LetterQuerySet
from deadletters.verbs import Verb
from tasks import audit
from tasks.audit import Actor

BATCH = 500


@dataclass
class Replay:
    """What is replayed, and how far it got. ``skipped`` counts by the sentence that says why.

    ``letters``: the open letters that match; ``filter``: what was asked, for the audit; ``limit``: at most so many.
    """

    letters: LetterQuerySet
    filter: dict[str, Any]
    limit: int | None = None
    reprocessed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    def matched(self) -> list[tuple[str, str, int]]:
        """(kind, error code, how many) of the letters that match, most first; the limit is not looked at."""
        rows = self.letters.order_by().values_list("kind", "error_code").annotate(n=Count("pk"))
        return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))

    def run(self, *, user: Actor, reason: str) -> Iterator[int]:
        """Send them again; after each batch, how many were done. Two audit rows: at the start, and at the end.

        The end is written however it comes, so that an interrupted replay tells how far it got.
        """
        self._audit(user, "start_replay", reason, 0, "started")
        outcome = "interrupted"
        try:
            for batch in self._batches():
                done = triage.move(Verb.REPROCESS, batch, user=user, reason=reason)
                self.reprocessed += len(done.done)
                self.skipped.update(one.why for one in done.skipped)
                yield self.reprocessed
            outcome = "done"
        finally:
            told = f"{outcome}: {self.reprocessed} reprocessed, {self.skipped.total()} skipped"
            self._audit(user, "replay_letters", reason, self.reprocessed, told)

    def _batches(self) -> Iterator[list[UUID]]:
        """Ids in order, each once. A task that dies again meanwhile gets a new letter, which is not of this replay."""
        newest = self.letters.order_by("-pk").values_list("pk", flat=True).first()
        if newest is None:
            return
        left, last = self.limit, None
        while left is None or left > 0:
            upto = self.letters.filter(pk__lte=newest)
            after = upto.filter(pk__gt=last) if last else upto
            size = BATCH if left is None else min(BATCH, left)
            batch = list(after.order_by("pk").values_list("pk", flat=True)[:size])
            if not batch:
                return
            yield batch
            last = batch[-1]
            left = None if left is None else left - len(batch)

    def _audit(self, user: Actor, action: str, reason: str, count: int, outcome: str) -> None:
        data = {"skipped": dict(self.skipped)} if self.skipped else {}
        asked = {**self.filter, **({"limit": self.limit} if self.limit is not None else {})}
        said = {"reason": reason, "count": count, "outcome": outcome}
        audit.record(user, action, target_type="letter", filter=asked, data=data, **said)  # type: ignore[arg-type]
