"""A task's event log in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tasks.errors import mask
from tasks.models import Task, TaskEvent
from tasks.words import span, word

SHOWN = 100
#: Characters of an error in a line.
ERROR_SHOWN = 300

SENTENCES: dict[str, str | Promise] = {
    "submitted": gettext_lazy("submitted"),
    "due": gettext_lazy("became due"),
    "claimed": gettext_lazy("claimed by a worker"),
    "succeeded": gettext_lazy("succeeded"),
    "retry": gettext_lazy("failed, will be retried"),
    "snoozed": gettext_lazy("put off, no budget used"),
    "interrupted": gettext_lazy("handed back by a worker that shut down"),
    "rescued": gettext_lazy("taken back: its worker process vanished"),
    "requeued": gettext_lazy("safe to run again: back in the queue"),
    "asked": gettext_lazy("its handler was asked what became of the work, and cannot tell yet"),
    "reconciled": gettext_lazy("its handler says that the work was done: succeeded"),
    "not_done": gettext_lazy("its handler says that the work was not done: back in the queue"),
    "asking": gettext_lazy("asked its handler what became of the work; the task runs no more, whatever it says"),
    "late_answer_refused": gettext_lazy("a late answer about its work was refused: the task had moved on"),
    "died": gettext_lazy("died"),
    "reprocessed": gettext_lazy("sent again with a fresh budget"),
    "cancel_requested": gettext_lazy("cancel asked for"),
    "cancelled": gettext_lazy("cancelled"),
    "run_now": gettext_lazy("told to run now"),
    "priority": gettext_lazy("given another priority"),
    "ran_here": gettext_lazy("ran at once, in the process of its caller"),
    "chain_ended": gettext_lazy("its chain ends here: it was cancelled, or no longer this attempt's"),
    "hook_failed": gettext_lazy("its hook failed, which changes nothing else"),
    "late_save_refused": gettext_lazy("a late result was refused: the task no longer belonged to that worker"),
}


@dataclass(frozen=True)
class Line:
    """One event: what happened, by whom, and the details worth a word."""

    event: TaskEvent
    sentence: str
    details: str


@dataclass(frozen=True)
class History:
    """Events, newest first. ``older``: the number to go on from, None at the first."""

    lines: list[Line]
    older: int | None = None


def history(task: Task, *, before: int | None = None) -> History:
    """The newest events of ``task`` (or the newest before number ``before``), in one query."""
    events = TaskEvent.objects.filter(task=task)
    rows = list((events.filter(seq__lt=before) if before else events).order_by("-seq")[: SHOWN + 1])
    older = rows[SHOWN - 1].seq if len(rows) > SHOWN else None
    return History([Line(event, _sentence(event), _details(event.data)) for event in rows[:SHOWN]], older)


def _sentence(event: TaskEvent) -> str:
    sentence = str(SENTENCES.get(event.type, event.type.replace("_", " ")))
    return _("%(what)s by %(who)s") % {"what": sentence, "who": event.actor} if event.actor else sentence


def _details(data: dict[str, Any]) -> str:
    parts = []
    if data.get("error_code"):
        parts.append(str(data["error_code"]))
    if data.get("reason"):
        parts.append(word(str(data["reason"])))
    if data.get("delay_seconds"):
        parts.append(_("after %(delay)s") % {"delay": span(data["delay_seconds"])})
    if data.get("worker"):
        parts.append(_("worker %(n)s") % {"n": data["worker"]})
    if data.get("asks"):
        parts.append(_("asked %(n)s ×") % {"n": data["asks"]})
    if data.get("outcome"):
        parts.append(word(str(data["outcome"])))
    if data.get("hook"):
        parts.append(mask(str(data["hook"])))
    if "from" in data and "to" in data:
        parts.append(f"{data['from']} → {data['to']}")
    if data.get("error"):
        parts.append(mask(str(data["error"]))[:ERROR_SHOWN])
    return " · ".join(parts)
