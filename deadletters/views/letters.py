"""The list of letters, and its live rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django_htmx.http import push_url

from deadletters.filters import ALL, TABS, LetterFilter
from deadletters.models import DeadLetter
from deadletters.querysets import COUNT_CAP, open_alike
from tasks import access
from tasks.paging import SIZE, Page, keyset
from tasks.views.limits import TooSlow, patience

#: New rows are counted no further.
MOST_NEW = 99


@access.page
def letter_list(request: HttpRequest) -> HttpResponse:
    """The list; to htmx only the part below the filter bar, with the filter's own URL for the address bar."""
    wanted = LetterFilter(request.GET)
    context = _list_context(wanted, request.GET)
    partial = request.htmx and request.htmx.request_type == "partial"  # type: ignore[attr-defined]
    response = render(request, "deadletters/letter_list.html" if partial else "deadletters/letters.html", context)
    patch_vary_headers(response, ("HX-Request", "HX-Request-Type"))
    return push_url(response, reverse("dead-letters") + wanted.query) if partial else response


def _list_context(wanted: LetterFilter, params: QueryDict) -> dict[str, Any]:
    tabs = [{"state": state, "href": wanted.with_state(state)} for state in (*TABS, ALL)]
    context = {"filter": wanted, "tabs": tabs, "page": Page([]), "rows": [], "cap": COUNT_CAP}
    try:
        with patience():
            page = keyset(wanted.narrow(DeadLetter.objects.for_list()), params)
            rows = dressed(page.rows)
            return {**context, "page": page, "rows": rows, "count": _count(wanted, page)}
    except TooSlow:
        return {**context, "too_slow": True}


def _count(wanted: LetterFilter, page: Page[DeadLetter]) -> int:
    """How many letters match; a list that ends on its first page was counted by reading it."""
    if page.is_first and not page.older:
        return len(page.rows)
    return int(wanted.narrow(DeadLetter.objects.all()).count_to())  # type: ignore[attr-defined]


def dressed(letters: Sequence[DeadLetter], matching: Collection[UUID] | None = None) -> list[dict[str, Any]]:
    """Each letter as its row wants it: with the number of open letters alike, and whether it left the filter."""
    alike = open_alike([letter.fingerprint for letter in letters])
    return [
        {
            "letter": letter,
            "alike": alike.get(letter.fingerprint, 0),
            "left": matching is not None and letter.pk not in matching,
        }
        for letter in letters
    ]


@access.page
def letter_rows(request: HttpRequest) -> HttpResponse:
    """The rows that are on somebody's screen (``id``), as they are now; and how many newer ones match (after ``top``).

    A row that left the filter stays where it is, marked, until the list is loaded again; one that is gone is removed.
    """
    ids = uuids(request.GET.getlist("id"))[: SIZE * 2]
    wanted = LetterFilter(request.GET)
    letters = list(DeadLetter.objects.for_list().among(ids))
    context: dict[str, Any] = {"filter": wanted, "missing": set(ids) - {letter.pk for letter in letters}}
    try:
        with patience():
            matching = set(wanted.narrow(DeadLetter.objects.among(ids)).values_list("pk", flat=True))
            context["new"] = _count_new(request, wanted)
    except TooSlow:
        matching = set(ids)
    context["rows"] = dressed(letters, matching)
    return render(request, "deadletters/letter_rows.html", context)


def _count_new(request: HttpRequest, wanted: LetterFilter) -> int:
    if "fresh" not in request.GET:  # a page further back: what is new stands on the first
        return 0
    top = next(iter(uuids([request.GET.get("top", "")])), None)
    return int(wanted.narrow(DeadLetter.objects.newer_than(top)).count_to(MOST_NEW))  # type: ignore[attr-defined]


def uuids(values: Sequence[str]) -> list[UUID]:
    """The ids among ``values``; what is none (an edited request) is dropped."""
    found = []
    for value in values:
        try:
            found.append(UUID(value))
        except ValueError:
            continue
    return found
