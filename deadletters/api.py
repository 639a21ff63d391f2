"""``/api/v1/dead-letters``: read what died, and send it again."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest
from django.urls import reverse
from ninja import Body, Router, Schema, Status
from pydantic import ConfigDict, Field, StrictStr

from deadletters import triage
from deadletters.filters import LetterFilter
from deadletters.models import DeadLetter
from tasks.api.auth import KeyAuth
from tasks.api.problems import problem
from tasks.api.state import urls
from tasks.models.api_key import Scope
from tasks.paging import keyset
from tasks.views.limits import TooSlow, patience

router = Router(auth=KeyAuth(Scope.OPERATE), tags=["dead letters"])
#: What an answer tells of a letter. The error itself stays in the console, which shows it to people.
FIELDS = (
    *("id", "task", "cycle", "kind", "provider", "state", "reason", "error_code", "fingerprint", "title", "attempts"),
    *("subject", "session_id", "user_id", "trace_id", "created_at", "state_at"),
)
#: Letters in one answer.
PAGE = 100
PAGING = frozenset({"before"})


class LetterOut(Schema):
    """One dead letter."""

    id: UUID
    task: UUID
    cycle: int
    kind: str
    provider: str | None
    state: str
    reason: str
    error_code: str
    fingerprint: str
    title: str
    attempts: int
    subject: str
    session_id: str
    user_id: str
    trace_id: str
    created_at: datetime
    state_at: datetime


class Letters(Schema):
    """A page of letters, newest first; ``next`` is the address of the older ones, or null."""

    letters: list[LetterOut]
    next: str | None


class ReprocessIn(Schema):
    """Why it is sent again; may be left out."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[StrictStr, Field(max_length=2_000)] = ""


class Reprocessed(Schema):
    """The letter that was sent again, and its task."""

    id: UUID
    state: str
    task: UUID
    status_url: str
    events_url: str


@router.get("", response=Letters, url_name="dead-letters", summary="Dead letters, newest first")
def list_letters(request: HttpRequest) -> Any:
    """The console's filters as parameters (``state``, ``kind``, ``code``, ``since`` …); open letters without any."""
    wanted = LetterFilter(request.GET)
    if faults := _faults(request, wanted):
        return problem(422, "The filter was not understood.", errors=faults)
    try:
        with patience():
            page = keyset(wanted.narrow(DeadLetter.objects.only(*FIELDS)), request.GET, size=PAGE)
    except TooSlow:
        return problem(503, "The search took too long; narrow it by kind, code or time.")
    query = [*wanted.params, ("before", page.older)]
    return {"letters": [_told(letter) for letter in page.rows], "next": _address(query) if page.older else None}


@router.post(
    "/{uuid:letter_id}/reprocess", response={202: Reprocessed}, url_name="reprocess", summary="Reprocess a letter"
)
def reprocess_letter(request: HttpRequest, letter_id: UUID, body: Annotated[ReprocessIn | None, Body()] = None) -> Any:
    """Send an open letter's task again with a fresh budget; 409, and why, where that cannot be."""
    reason = body.reason if body else ""
    outcome = triage.reprocess([letter_id], user=request.auth, reason=reason)  # type: ignore[attr-defined]
    letter = DeadLetter.objects.only("id", "state", "task").filter(pk=letter_id).first()
    if letter is None:
        raise Http404("There is no such letter.")
    if not outcome.done:
        return problem(409, outcome.skipped[0].why)
    told = {"id": letter.pk, "state": letter.state, "task": letter.task_id, **urls(letter.task_id)}
    return Status(202, told)


def _faults(request: HttpRequest, wanted: LetterFilter) -> list[dict[str, str]]:
    unknown = request.GET.keys() - wanted.fields.keys() - PAGING
    faults = [{"field": name, "message": "There is no such parameter."} for name in sorted(unknown)]
    return faults + [{"field": name, "message": " ".join(map(str, texts))} for name, texts in wanted.errors.items()]


def _address(query: list[tuple[str, str]]) -> str:
    return f"{reverse('api-1:dead-letters')}?{urlencode(query)}"


def _told(letter: DeadLetter) -> dict[str, Any]:
    pointers = {"task": letter.task_id, "kind": letter.kind_id, "provider": letter.provider_id}
    return {**{name: getattr(letter, name) for name in FIELDS if name not in pointers}, **pointers}
