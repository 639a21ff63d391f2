"""Reprocess, discard and restore: of one letter, and of those that are ticked."""

from __future__ import annotations

from collections import Counter
from typing import cast
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy

from deadletters import triage
from deadletters.models import DeadLetter
from deadletters.triage import Outcome, TriageError
from deadletters.verbs import Verb
from deadletters.views.letters import uuids
from tasks import access
from tasks.views.answer import answer, reason_from

#: Different reasons for being left alone that one answer names.
MOST_REASONS = 3


#: What is said of the letters that were decided.
DONE = {
    Verb.REPROCESS: ngettext_lazy("%(n)d letter is sent again.", "%(n)d letters are sent again.", "n"),
    Verb.DISCARD: ngettext_lazy("%(n)d letter is discarded.", "%(n)d letters are discarded.", "n"),
    Verb.RESTORE: ngettext_lazy("%(n)d letter is open again.", "%(n)d letters are open again.", "n"),
}


@access.verb
def reprocess_letter(request: HttpRequest, letter_id: UUID) -> HttpResponse:
    """Send one letter again. The reason is welcome and may be left out."""
    return _one(request, letter_id, Verb.REPROCESS)


@access.verb
def discard_letter(request: HttpRequest, letter_id: UUID) -> HttpResponse:
    """Close one letter without running it, with a reason."""
    return _one(request, letter_id, Verb.DISCARD)


@access.verb
def restore_letter(request: HttpRequest, letter_id: UUID) -> HttpResponse:
    """Open one discarded letter again."""
    return _one(request, letter_id, Verb.RESTORE)


@access.verb
def reprocess_letters(request: HttpRequest) -> HttpResponse:
    """Send the ticked letters again."""
    return _ticked(request, Verb.REPROCESS)


@access.verb
def discard_letters(request: HttpRequest) -> HttpResponse:
    """Close the ticked letters without running them, with one reason."""
    return _ticked(request, Verb.DISCARD)


@access.verb
def restore_letters(request: HttpRequest) -> HttpResponse:
    """Open the ticked, discarded letters again."""
    return _ticked(request, Verb.RESTORE)


def _one(request: HttpRequest, letter_id: UUID, verb: Verb) -> HttpResponse:
    letter = get_object_or_404(DeadLetter.objects.only("id"), pk=letter_id)
    back = reverse("dead-letter", args=[letter.pk])
    try:
        outcome = _decide(request, verb, [letter.pk])
    except TriageError as error:
        return answer(request, str(error), back=back, level="error", status=422)
    if outcome.skipped:
        why = _("Nothing was done. %(why)s") % {"why": outcome.skipped[0].why}
        return answer(request, why, back=back, level="warning")
    return answer(request, DONE[verb] % {"n": 1}, back=back)


def _ticked(request: HttpRequest, verb: Verb) -> HttpResponse:
    back = reverse("dead-letters")
    ids = uuids(request.POST.getlist("id"))
    if not ids:
        return answer(request, _("Tick the letters first."), back=back, level="error", status=422)
    try:
        outcome = _decide(request, verb, ids)
    except TriageError as error:
        return answer(request, str(error), back=back, level="error", status=422)
    done = DONE[verb] % {"n": len(outcome.done)} if outcome.done else _("Nothing was done.")
    if outcome.skipped:
        return answer(request, f"{done} {_left(outcome)}", back=back, level="warning")
    return answer(request, done, back=back)


def _decide(request: HttpRequest, verb: Verb, ids: list[UUID]) -> Outcome:
    user = cast(User, request.user)  # the door has let nobody else in
    reason = reason_from(request)
    if verb == Verb.REPROCESS:
        return triage.reprocess(ids, user=user, reason=reason)
    if verb == Verb.DISCARD:
        return triage.discard(ids, user=user, reason=reason)
    return triage.restore(ids, user=user)


def _left(outcome: Outcome) -> str:
    """How many letters were left as they were, and why."""
    whys = Counter(skipped.why for skipped in outcome.skipped)
    count = len(outcome.skipped)
    left = ngettext("%d was left as it was:", "%d were left as they were:", count) % count
    shown = [why if times == count else f"{times} × {why}" for why, times in whys.most_common(MOST_REASONS)]
    return " ".join([left, *shown, *(["…"] if len(whys) > MOST_REASONS else [])])
