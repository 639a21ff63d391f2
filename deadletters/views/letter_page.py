"""The page of one letter, and the part of it that changes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.apps import apps
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from deadletters.frames import application_frames
from deadletters.models import DeadLetter
from deadletters.nothing_to_run import nothing_to_run
from deadletters.querysets import ALIKE_CAP, open_alike
from deadletters.verbs import Verb, refusal
from deadletters.words import REASONS, STATE_SENTENCES
from tasks import access
from tasks.errors import mask
from tasks.errors.codes import FAILED
from tasks.models import ErrorCode, Task
from tasks.states import LetterState, Reason, Status
from tasks.views.document import stored_text
from tasks.views.task_page import INLINE
from tasks.views.timeline import timeline
from tasks.views.why import Crew, cooling, explain, held, no_worker, paused

#: States that nothing leaves: the page asks no more.
SETTLED = (LetterState.RECOVERED, LetterState.DIED_AGAIN, LetterState.CANCELLED)
#: Moves of a letter shown; each takes a person.
MOST_EVENTS = 50


@access.page
def letter_page(request: HttpRequest, letter_id: UUID) -> HttpResponse:
    """The whole page."""
    letter = _find(letter_id)
    failure = letter.failure or {}
    code = ErrorCode.objects.filter(pk=letter.error_code).first()
    context = {
        **_live(letter),
        "reason": REASONS[Reason(letter.reason)],
        "code": code,
        "user_told": _user_told(code),
        "alike": open_alike([letter.fingerprint]).get(letter.fingerprint, 0) - (letter.state == LetterState.OPEN),
        "alike_cap": ALIKE_CAP,
        "last_error": mask(letter.last_error),
        "failure": {key: failure.get(key) for key in ("exception", "http_status", "cause_chain", "headers", "body")},
        "traceback": mask(failure.get("traceback") or ""),
        "frames": application_frames(mask(failure.get("traceback") or "")),
        "payload": _payload(letter.task),
        "timeline": timeline(letter.task),
    }
    return render(request, "deadletters/letter.html", context)


@access.page
def letter_live(request: HttpRequest, letter_id: UUID) -> HttpResponse:
    """State, buttons, progress, history and attempts: all that changes."""
    letter = _find(letter_id)
    context = {**_live(letter), "timeline": timeline(letter.task)}
    return render(request, "deadletters/letter_fragment.html", context)


def _find(letter_id: UUID) -> DeadLetter:
    letters = DeadLetter.objects.select_related(
        "handled_by", "kind__provider", "task__kind", "task__lane__provider", "provider"
    )
    return get_object_or_404(letters.defer("task__payload", "task__result"), pk=letter_id)


def _live(letter: DeadLetter) -> dict[str, Any]:
    task = letter.task
    later = letter.state != LetterState.OPEN and task.cycle > letter.cycle
    crew = Crew()
    # Where a person could send it again, had its task something to run.
    futile = nothing_to_run([letter.pk]).get(letter.pk) if letter.state == LetterState.OPEN else None
    return {
        "letter": letter,
        "task": task,
        "state_sentence": STATE_SENTENCES[LetterState(letter.state)],
        "reprocess_label": reprocess_label(letter),
        "denied": {verb.value: refusal(letter, verb) for verb in Verb},
        "futile": futile,
        "schedule_there": bool(futile and futile.schedule and _is_there(futile.schedule)),
        "why": explain(task, crew) if later else "",
        "hindrance": _hindrance(letter, crew) if letter.state == LetterState.OPEN and not futile else "",
        "later": _later_letter(letter) if letter.state == LetterState.DIED_AGAIN else None,
        "events": letter.events.order_by("-id")[:MOST_EVENTS],
        "settled": letter.state in SETTLED,
        "running": task.status == Status.RUNNING,
    }


def _is_there(schedule: int) -> bool:
    """One that was for once is gone by now, and is made anew."""
    found: bool = apps.get_model("django_q", "Schedule").objects.filter(pk=schedule).exists()
    return found


def _user_told(code: ErrorCode | None) -> str:
    """The code's message; a code that is retried promises that we try again, which holds for no dead task."""
    if code is None:
        return ""
    return FAILED if code.retryable else code.user_message


def reprocess_label(letter: DeadLetter) -> str:
    """The words of the button: the budget that the press spends."""
    attempts = letter.kind.max_attempts
    return ngettext(
        "Reprocess: %(n)d attempt, cycle %(cycle)d", "Reprocess: %(n)d attempts, cycle %(cycle)d", attempts
    ) % {"n": attempts, "cycle": letter.cycle + 1}


def _hindrance(letter: DeadLetter, crew: Crew) -> str:
    """What its task would wait for if it were sent again now; empty where nothing stands in its way."""
    kind, provider = letter.kind, letter.kind.provider
    if kind.paused_at:
        return _("Its kind is paused.") + " " + paused(kind)
    if provider and provider.held_at:
        return _("Provider %(name)s is on hold.") % {"name": provider.pk} + " " + held(provider)
    if provider and provider.cooling_until and provider.cooling_until > timezone.now():
        return _("Provider %(name)s is cooling.") % {"name": provider.pk} + " " + cooling(provider)
    return no_worker(kind, crew)


def _later_letter(letter: DeadLetter) -> DeadLetter | None:
    later = DeadLetter.objects.filter(task=letter.task_id, cycle__gt=letter.cycle)
    return later.only("id", "cycle", "state").order_by("cycle").first()


def _payload(task: Task) -> dict[str, Any]:
    """The payload for display: masked text where it is short, else its size and where it can be had."""
    url = reverse("task-payload", args=[task.pk])
    size: int = Task.objects.with_sizes().only("id").get(pk=task.pk).payload_size  # type: ignore[attr-defined]
    text = None if size > INLINE else stored_text(task.pk, "payload")
    return {"name": "payload", "size": size, "url": url, "text": text}
