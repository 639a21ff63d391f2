"""Named, chainable, bounded reads of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Self
from uuid import UUID

from django.apps import apps
from django.db import models
from django.db.models import Exists, OuterRef, Q

from tasks.states import FINAL, PENDING, Status

if TYPE_CHECKING:
    from tasks.models import Task  # noqa: F401 - named in a text below

#: What lists read: no payload, no result, and of the joined rows only what says why a task waits.
LIST_FIELDS = (
    "id",
    "kind",
    "lane",
    "status",
    "reason",
    "error_code",
    "subject",
    "cycle",
    "failures",
    "snoozes",
    "rescues",
    "cycle_started_at",
    "priority",
    "run_after",
    "cancel_requested_at",
    "parked_at",
    "cost",
    "created_at",
    "status_at",
    "finished_at",
    "kind__handler",
    "kind__max_attempts",
    "kind__paused_at",
    "kind__paused_by",
    "kind__pause_reason",
    "lane__provider__held_at",
    "lane__provider__held_by",
    "lane__provider__hold_reason",
    "lane__provider__hold_code",
    "lane__provider__cooling_until",
    "lane__provider__cooling_reason",
)


def first_id_at(moment: datetime) -> UUID:
    """The smallest id that a task submitted in the millisecond of ``moment`` can have (ids are UUIDv7).

    Lists are cut by time through it: ids are what they are ordered and indexed by. Times before 1970 count as 1970.
    """
    return UUID(int=max(0, int(moment.timestamp() * 1000)) << 80)


class TaskQuerySet(models.QuerySet["Task"]):
    """Reads of the task table."""

    def unfinished(self) -> Self:
        """Tasks that have not reached an end of their cycle."""
        return self.exclude(status__in=FINAL)

    def pending(self) -> Self:
        """Tasks that wait for something: no attempt is under way."""
        return self.filter(status__in=sorted(PENDING))

    def running(self) -> Self:
        """Tasks with an attempt under way."""
        return self.filter(status=Status.RUNNING)

    def for_list(self) -> Self:
        """With the kind, the provider and no more columns than a list shows."""
        return self.select_related("kind", "lane__provider").only(*LIST_FIELDS)

    def for_page(self) -> Self:
        """With everything a task's page shows at once; payload and result are read apart, by size."""
        return self.select_related("kind", "lane__provider", "worker").defer(
            "payload", "result", "kind__system_prompt", "kind__prompt", "kind__output_schema", "kind__fallback_result"
        )

    def with_sizes(self) -> Self:
        """Annotates ``payload_size`` and ``result_size``: octets of the JSON text, None without a result."""
        size = models.Func(
            models.F("payload"), template="octet_length(%(expressions)s::text)", output_field=models.IntegerField()
        )
        result = models.Func(
            models.F("result"), template="octet_length(%(expressions)s::text)", output_field=models.IntegerField()
        )
        return self.annotate(payload_size=size, result_size=result)

    def on_provider(self, name: str) -> Self:
        """Tasks that wait for, run on or ran last on a provider: by their lane."""
        return self.filter(lane__provider=name)

    def tagged(self, tag: str) -> Self:
        """Tasks that carry a tag. The index holds only those with tags; the planner takes it where that is said."""
        return self.filter(~Q(tags=[]), tags__contains=[tag])

    def mentions(self, text: str) -> Self:
        """Tasks whose subject or any attempt's error has ``text`` in it, whatever the case; or whose id it is."""
        try:
            return self.filter(pk=UUID(text))
        except ValueError:
            pass
        attempts = apps.get_model("tasks", "Attempt").objects
        in_error = Exists(attempts.filter(task=OuterRef("pk"), last_error__icontains=text))
        return self.filter(Q(subject__icontains=text) | in_error)

    def submitted_from(self, moment: datetime) -> Self:
        """Tasks submitted at ``moment`` or later, to the millisecond."""
        return self.filter(pk__gte=first_id_at(moment))

    def submitted_until(self, moment: datetime) -> Self:
        """Tasks submitted at ``moment`` or earlier, to the millisecond."""
        return self.filter(pk__lt=UUID(int=min(first_id_at(moment).int + (1 << 80), (1 << 128) - 1)))

    def newer_than(self, task_id: UUID | None) -> Self:
        """Tasks submitted after this one; all where it is None (an empty list has no newest)."""
        return self.filter(pk__gt=task_id) if task_id else self

    def among(self, ids: Iterable[UUID]) -> Self:
        """These tasks."""
        return self.filter(pk__in=list(ids))

    def count_to(self, cap: int) -> int:
        """How many, counted no further than ``cap`` + 1: the answer beyond the cap means “more”."""
        return self.order_by("pk")[: cap + 1].count()
