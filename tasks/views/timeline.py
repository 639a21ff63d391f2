"""The attempts of a task as people read them: by cycle, newest first, numbered by what they cost of the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import Count, IntegerField, OuterRef, Subquery
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, Left
from django.utils import timezone
from django.utils.translation import gettext as _

from tasks.models import Attempt, AttemptLog, ModelCall, Task, TaskEvent
from tasks.states import Outcome
from tasks.words import span, word

#: Attempts on the page at once; older ones are a link away.
SHOWN = 50
#: Characters of an error in the timeline; the rest is in the attempt's details.
ERROR_SHOWN = 600
#: Log lines of the newest attempt on the page at once, the last ones; all of them are a click away.
LINES_SHOWN = 20


@dataclass(frozen=True)
class Entry:
    """One attempt. ``number`` within its cycle; None where it used no budget."""

    attempt: Attempt
    number: int | None
    http_status: str
    decision: str
    seconds: float
    #: The last lines of its log; only the newest attempt that has any shows them at once.
    lines: list[AttemptLog] = field(default_factory=list)

    @property
    def fold_id(self) -> str:
        """The DOM id of the fold that holds its details."""
        return f"details-{self.attempt.pk}"

    @property
    def log_id(self) -> str:
        """The DOM id of the fold that holds its log."""
        return f"log-{self.attempt.pk}"

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return (self.attempt.input_tokens or 0) + (self.attempt.output_tokens or 0)


@dataclass(frozen=True)
class Cycle:
    """One budget of attempts. ``begun``: the event that a person's reprocess left; None in the first cycle."""

    number: int
    entries: list[Entry] = field(default_factory=list)
    begun: TaskEvent | None = None


@dataclass(frozen=True)
class Timeline:
    """Cycles, newest first. ``older``: the attempt to go on from, None at the first."""

    cycles: list[Cycle]
    older: int | None = None


def timeline(task: Task, *, before: int | None = None) -> Timeline:
    """The newest attempts of ``task`` (or the newest before the attempt ``before``); two queries, three with a log."""
    numbered = _numbered(task)
    attempts = list((numbered.filter(pk__lt=before) if before else numbered).order_by("-pk")[: SHOWN + 1])
    older = attempts[SHOWN - 1].pk if len(attempts) > SHOWN else None
    attempts = attempts[:SHOWN]
    begun = _begun(task) if task.cycle > 1 else {}
    lines = _last_lines(attempts) if before is None else {}
    cycles = [Cycle(number, _entries(rows, lines), begun.get(number)) for number, rows in _by_cycle(attempts)]
    if before is None and task.cycle not in {cycle.number for cycle in cycles}:
        cycles.insert(0, Cycle(task.cycle, [], begun.get(task.cycle)))
    return Timeline(cycles, older)


def _numbered(task: Task) -> Any:
    # A window function would count the shown attempts only: the slice is taken first.
    spent = Attempt.objects.filter(task=OuterRef("task"), cycle=OuterRef("cycle"), pk__lte=OuterRef("pk"), counted=True)
    calls = ModelCall.objects.filter(attempt=OuterRef("pk")).order_by().values("attempt")
    return (
        Attempt.objects.filter(task=task)
        .annotate(
            spent=_counted(spent.order_by().values("task")),
            calls_made=_counted(calls),
            logged=_counted(AttemptLog.objects.filter(attempt=OuterRef("pk")).order_by().values("attempt")),
            error_shown=Left("last_error", ERROR_SHOWN),
            http_status=KeyTextTransform("http_status", "failure"),
        )
        .select_related("prompt_version", "worker")
        .only(
            "task",
            "cycle",
            "outcome",
            "counted",
            "started_at",
            "finished_at",
            "error_code",
            "fingerprint",
            "decision",
            "repairs",
            "mended",
            "input_tokens",
            "output_tokens",
            "cost",
            "provider",
            "prompt_version__number",
            "worker__host",
            "worker__pid",
        )
    )


def _counted(rows: Any) -> Coalesce:
    return Coalesce(Subquery(rows.annotate(n=Count("pk")).values("n"), output_field=IntegerField()), 0)


def _by_cycle(attempts: Sequence[Attempt]) -> list[tuple[int, list[Attempt]]]:
    return [(number, list(rows)) for number, rows in groupby(attempts, key=lambda attempt: attempt.cycle)]


def _last_lines(attempts: Sequence[Attempt]) -> dict[int, list[AttemptLog]]:
    """The last lines of the newest attempt that has any, oldest first, by its id; no query where none has."""
    newest = next((attempt for attempt in attempts if attempt.logged), None)  # type: ignore[attr-defined]
    if newest is None:
        return {}
    return {newest.pk: list(AttemptLog.objects.filter(attempt=newest).order_by("-seq")[:LINES_SHOWN])[::-1]}


def _begun(task: Task) -> dict[int, TaskEvent]:
    events = TaskEvent.objects.filter(task=task, type="reprocessed").order_by("-seq")[:SHOWN]
    return {event.cycle: event for event in events}


def _entries(attempts: Sequence[Attempt], lines: dict[int, list[AttemptLog]]) -> list[Entry]:
    now = timezone.now()
    return [
        Entry(
            attempt=attempt,
            number=_number(attempt),
            http_status=attempt.http_status or "",  # type: ignore[attr-defined]
            decision=decision_words(attempt),
            seconds=_seconds(attempt.started_at, attempt.finished_at or now),
            lines=lines.get(attempt.pk, []),
        )
        for attempt in attempts
    ]


def _number(attempt: Attempt) -> int | None:
    spent: int = attempt.spent  # type: ignore[attr-defined]
    if attempt.counted:
        return spent
    return spent + 1 if attempt.outcome == Outcome.RUNNING else None


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())


def decision_words(attempt: Attempt) -> str:
    """What followed an attempt, in words; empty where its outcome says it all."""
    decision = attempt.decision or {}
    action = decision.get("action")
    delay = span(decision.get("delay_seconds") or 0.0)
    if action == "retry":
        return _("retried after %(delay)s") % {"delay": delay} + _hint(decision)
    if action == "snooze":
        if decision.get("because") == "provider_held":
            return _("the provider was on hold: put off %(delay)s, no budget used") % {"delay": delay}
        return _("put off %(delay)s, no budget used") % {"delay": delay} + _hint(decision)
    if action == "die":
        return _("died: %(reason)s") % {"reason": word(decision.get("reason") or "")}
    return {
        Outcome.INTERRUPTED: _("handed back while its worker shut down, no budget used"),
        Outcome.LOST: _("its worker process vanished, no budget used"),
    }.get(Outcome(attempt.outcome), "")


def _hint(decision: dict[str, Any]) -> str:
    hint = decision.get("hint_seconds")
    return "" if hint is None else _(" (the provider asked for %(hint)s)") % {"hint": span(hint)}
