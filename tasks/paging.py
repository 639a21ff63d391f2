"""Keyset paging: a page is a bounded slice before or after a key, never an offset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)

SIZE = 50


@dataclass(frozen=True)
class Page(Generic[Row]):
    """One page, newest first. ``newer`` and ``older`` are the keys to page from, empty at an end."""

    rows: list[Row]
    newer: str = ""
    older: str = ""

    @property
    def is_first(self) -> bool:
        """Whether nothing newer stood above it when it was read."""
        return not self.newer

    @property
    def top(self) -> str:
        """The key of the newest row, or an empty string."""
        return str(self.rows[0].pk) if self.rows else ""


def keyset(queryset: QuerySet[Row], params: Mapping[str, Any], *, size: int = SIZE) -> Page[Row]:
    """The page that ``params`` asks for: ``?before=KEY`` older rows, ``?after=KEY`` newer ones, else the newest.

    ``queryset`` is ordered here, by primary key, newest first. One row more than ``size`` is read to know whether
    the list goes on. A key that is none (an edited URL) gives the newest page.
    """
    before = _key(queryset, params.get("before", ""))
    after = _key(queryset, params.get("after", ""))
    if after is not None:
        rows = list(queryset.filter(pk__gt=after).order_by("pk")[: size + 1])
        more, rows = len(rows) > size, rows[:size][::-1]
        if more:
            return Page(rows, newer=str(rows[0].pk), older=str(rows[-1].pk))
        # Reached the top: show the newest page whole instead of a stub.
    if before is None or after is not None:
        rows = list(queryset.order_by("-pk")[: size + 1])
        return Page(rows[:size], older=str(rows[size - 1].pk) if len(rows) > size else "")
    rows = list(queryset.filter(pk__lt=before).order_by("-pk")[: size + 1])
    if not rows:
        return Page([], newer=str(before))
    return Page(rows[:size], newer=str(rows[0].pk), older=str(rows[size - 1].pk) if len(rows) > size else "")


def _key(queryset: QuerySet[Row], value: str) -> Any:
    if not value:
        return None
    try:
        return queryset.model._meta.pk.to_python(value)
    except ValidationError:
        return None
