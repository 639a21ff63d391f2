"""Named, chainable, bounded reads of letters."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Self
from uuid import UUID

from django.db import connection, models
from django.db.models import Q

from tasks.querysets import first_id_at
from tasks.states import LetterState

if TYPE_CHECKING:
    from deadletters.models import DeadLetter  # noqa: F401 - named in a text below

#: How far the letters of a list are counted: beyond it the page says “10,000+”.
COUNT_CAP = 10_000
#: How far letters alike are counted, for each fingerprint of a page of them; and open ones in the rail.
ALIKE_CAP = 1_000

#: What a row of a list shows. The failure and the error text, up to 200 KiB a letter, stay where they are.
ROW_FIELDS = (
    *("id", "cycle", "state", "reason", "error_code", "fingerprint", "title", "subject", "attempts", "cost"),
    *("created_at", "state_at", "kind", "provider", "task", "task__status"),
)

ALIKE = """
SELECT f, (SELECT count(*) FROM (SELECT FROM deadletters_deadletter
                                 WHERE fingerprint = f AND state = 'open' LIMIT %(most)s) AS found)
FROM unnest(%(fingerprints)s::text[]) AS f
"""


class LetterQuerySet(models.QuerySet["DeadLetter"]):
    """Reads of the letters."""

    def open(self) -> Self:
        """Letters that wait for a person."""
        return self.filter(state=LetterState.OPEN)

    def for_list(self) -> Self:
        """With the task's status and no more columns than a list shows."""
        return self.select_related("task").only(*ROW_FIELDS)

    def among(self, ids: Iterable[UUID]) -> Self:
        """These letters."""
        return self.filter(pk__in=list(ids))

    def newer_than(self, letter_id: UUID | None) -> Self:
        """Letters written after this one; all where it is None (an empty list has no newest)."""
        return self.filter(pk__gt=letter_id) if letter_id else self

    def died_from(self, moment: datetime) -> Self:
        """Letters of deaths at ``moment`` or later, to the millisecond, by their ids."""
        return self.filter(pk__gte=first_id_at(moment))

    def died_until(self, moment: datetime) -> Self:
        """Letters of deaths at ``moment`` or earlier, to the millisecond, by their ids."""
        return self.filter(pk__lt=UUID(int=min(first_id_at(moment).int + (1 << 80), (1 << 128) - 1)))

    def mentions(self, text: str) -> Self:
        """Letters with ``text`` in the error or the subject, whatever the case; or whose id, or task's id, it is."""
        try:
            wanted = UUID(text)
        except ValueError:
            return self.filter(Q(last_error__icontains=text) | Q(subject__icontains=text))
        return self.filter(Q(pk=wanted) | Q(task=wanted))

    def count_to(self, cap: int = COUNT_CAP) -> int:
        """How many, counted no further than ``cap`` + 1: the answer beyond the cap means “more”."""
        return self.order_by("-pk")[: cap + 1].count()


def open_alike(fingerprints: Collection[str]) -> dict[str, int]:
    """How many open letters share each fingerprint, counted no further than ``ALIKE_CAP`` + 1 each; one query."""
    wanted = sorted({fingerprint for fingerprint in fingerprints if fingerprint})
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(ALIKE, {"fingerprints": wanted, "most": ALIKE_CAP + 1})
        return dict(cursor.fetchall())
