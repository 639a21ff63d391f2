"""Why a task waits, in words. Reads only what it is given, and of the crew at most once what a page needs."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from tasks.errors.mask import mask
from tasks.lifecycle import Full, Fullness, fullness
from tasks.lifecycle.suspects import SUSPECT, patience_seconds, quiet_seconds
from tasks.lifecycle.unknown import MAX_ASKS, NOBODY_SECONDS
from tasks.models import Kind, Provider, Task, WorkerProcess
from tasks.states import Status
from tasks.words import ago_text, clock, span, word

#: Words for a list, and a sentence, for each thing that a limit bounds.
LIMIT_SHORT: dict[str, str | Promise] = {
    "running": gettext_lazy("%(name)s is at its limit of tasks at once"),
    "requests": gettext_lazy("%(name)s is at its requests per minute"),
    "tokens": gettext_lazy("%(name)s is at its tokens per minute"),
}
#: By the number ``n`` that the limit allows.
LIMIT_LONG = {
    "running": ngettext_lazy(
        "Waits behind a limit: only %(limit)s task of %(name)s may be under way. It starts when no other is.",
        "Waits behind a limit: %(used)s of at most %(limit)s tasks of %(name)s are under way. It starts when one ends.",
        "n",
    ),
    "requests": ngettext_lazy(
        "Waits behind a limit: %(name)s may have only %(limit)s request in a minute. It starts when the last is a"
        " minute old.",
        "Waits behind a limit: %(name)s had %(used)s of at most %(limit)s requests in the last minute. It starts when"
        " the oldest of them are a minute old.",
        "n",
    ),
    "tokens": ngettext_lazy(
        "Waits behind a limit: %(name)s spent %(used)s of at most %(limit)s token in the last minute, and what runs is"
        " expected to spend the rest. It starts when the oldest of them are a minute old.",
        "Waits behind a limit: %(name)s spent %(used)s of at most %(limit)s tokens in the last minute, and what runs is"
        " expected to spend the rest. It starts when the oldest of them are a minute old.",
        "n",
    ),
}

#: What nobody is asked about is decided sooner than this.
SETTLE_SECONDS = 10.0


class Crew:
    """What the live worker processes can run, and what limits leave no room; asked of the database at most once."""

    def __init__(self) -> None:
        self._handlers: set[str] | None = None
        self._reconcilers: set[str] = set()
        self._alive = False
        self._fullness: Fullness | None = None

    def _ask(self) -> set[str]:
        if self._handlers is None:
            rows = WorkerProcess.objects.filter(
                role="worker", lost_at__isnull=True, stopped_at__isnull=True, lease_until__gt=timezone.now()
            ).values_list("handlers", "reconcilers")[:5_000]
            known = list(rows)
            self._alive = bool(known)
            self._handlers = {name for names, _ in known for name in names}
            self._reconcilers = {name for _, names in known for name in names}
        return self._handlers

    @property
    def alive(self) -> bool:
        """Whether any worker process holds its lease."""
        self._ask()
        return self._alive

    def runs(self, kind: Kind) -> bool:
        """Whether a live process can run tasks of this kind: prompts need none in particular."""
        handlers = self._ask()
        return self._alive and (kind.is_prompt or kind.handler in handlers)

    def reconciles(self, kind: Kind) -> bool:
        """Whether a live process can ask the kind's handler what became of vanished work."""
        self._ask()
        return kind.handler in self._reconcilers

    def full(self, task: Task) -> tuple[str, Full] | None:
        """The limit that leaves no room for the task: of its kind, else of its provider, by name; None where none."""
        if self._fullness is None:
            self._fullness = fullness()
        kinds, providers = self._fullness.kinds, self._fullness.providers
        provider = task.lane.provider_id or ""
        if task.kind_id in kinds:
            return task.kind_id, kinds[task.kind_id]
        return (provider, providers[provider]) if provider in providers else None


def obstacle(task: Task, crew: Crew) -> str:
    """What holds a task back that is ready or would be, in a few words for a list; empty where nothing does."""
    provider = task.lane.provider
    if task.parked_at:
        return _("set aside")
    if task.kind.paused_at:
        return _("kind paused")
    if provider and provider.held_at:
        return _("provider %(name)s on hold") % {"name": provider.pk}
    if provider and _cools(provider):
        return _("provider %(name)s cooling until %(time)s") % {
            "name": provider.pk,
            "time": clock(provider.cooling_until),  # type: ignore[arg-type]
        }
    if task.status != Status.READY:
        return ""
    if not crew.runs(task.kind):
        return _("no worker runs this kind")
    if found := crew.full(task):
        return str(LIMIT_SHORT[found[1].what]) % {"name": found[0]}
    return _("runs apart: processes died under it") if task.rescues >= SUSPECT else ""


def _cools(provider: Provider) -> bool:
    return provider.cooling_until is not None and provider.cooling_until > timezone.now()


def explain(task: Task, crew: Crew) -> str:
    """One sentence or two: where the task stands and what it waits for."""
    if task.status == Status.READY:
        return _held_back(task, crew) or _suspected(task) or _("Ready: it starts as soon as a worker has a free slot.")
    if task.status == Status.RUNNING:
        return _running(task)
    if task.status in (Status.SCHEDULED, Status.RETRYABLE):
        held = _held_back(task, crew)
        return " ".join(part for part in (_due(task), held) if part)
    if task.status == Status.UNKNOWN:
        return (
            _("Its worker process vanished while it ran; whether the work happened is open.") + " " + _asked(task, crew)
        )
    if task.status == Status.DEAD:
        return _("Died %(ago)s: %(reason)s.") % {"ago": _ago(task.finished_at), "reason": _death(task)}
    if task.finished_at:
        return _("%(status)s %(ago)s.") % {"status": word(task.status).capitalize(), "ago": _ago(task.finished_at)}
    return ""


def _running(task: Task) -> str:
    if task.cancel_requested_at:
        return _("Cancel was asked for %(ago)s: its worker is aborting the call.") % {
            "ago": _ago(task.cancel_requested_at)
        }
    return _("Attempt %(n)d of %(of)d started %(ago)s.") % {
        "n": task.failures + 1,
        "of": task.kind.max_attempts,
        "ago": _ago(task.status_at),
    }


def _asked(task: Task, crew: Crew) -> str:
    """How an unknown task is decided."""
    if crew.reconciles(task.kind):
        return _("Its handler is asked: %(n)d of at most %(of)d times so far.") % {"n": task.asks, "of": MAX_ASKS}
    since = task.ask_after or task.status_at
    if task.kind.is_prompt or timezone.now() - since < timedelta(seconds=SETTLE_SECONDS):
        return _("It is being decided.")
    until = since + timedelta(seconds=NOBODY_SECONDS)
    return _("No live worker can be asked. If none comes by %(at)s, it becomes a dead letter.") % {"at": clock(until)}


def _due(task: Task) -> str:
    if task.run_after <= timezone.now():
        return _("Due now.")
    when = {"in": ago_text(task.run_after), "at": clock(task.run_after)}
    if task.status == Status.SCHEDULED:
        return _("Starts %(in)s, at %(at)s.") % when
    if task.snoozes:
        return _("Put off without using budget: tries again %(in)s, at %(at)s.") % when
    return _("Retries %(in)s, at %(at)s.") % when


def _death(task: Task) -> str:
    reason = word(task.reason)
    return f"{reason} ({task.error_code})" if task.error_code else reason


def _held_back(task: Task, crew: Crew) -> str:
    """Why a task that is due may not start; empty where nothing stands in its way."""
    kind, provider = task.kind, task.lane.provider
    if task.parked_at:
        return _("Held back: set aside %(ago)s with its session.") % {"ago": _ago(task.parked_at)}
    if kind.paused_at:
        return _("Held back: the kind is paused.") + " " + paused(kind)
    if provider and provider.held_at:
        return _("Held back: provider %(name)s is on hold.") % {"name": provider.pk} + " " + held(provider)
    if provider and _cools(provider):
        return _("Held back: provider %(name)s is cooling.") % {"name": provider.pk} + " " + cooling(provider)
    if task.status == Status.READY:
        return no_worker(kind, crew) or _limited(task, crew) or _suspected(task)
    return ""


def _limited(task: Task, crew: Crew) -> str:
    found = crew.full(task)
    if found is None:
        return ""
    name, full = found
    words = {"n": full.limit, "name": name, "used": f"{full.used:,}", "limit": f"{full.limit:,}"}
    return str(LIMIT_LONG[full.what] % words)


def _suspected(task: Task) -> str:
    if task.rescues < SUSPECT:
        return ""
    words = {"n": task.rescues, "quiet": span(quiet_seconds()), "patience": span(patience_seconds())}
    told = _(
        "%(n)d worker processes died under it, so it starts apart: in a process that runs no other such task, and once"
        " no process has died under others for %(quiet)s, after %(patience)s at the latest. Another death while nothing"
        " else dies is its end."
    )
    return told % words


def paused(kind: Kind) -> str:
    """A kind's pause: who, when, why."""
    words = {"by": kind.paused_by, "ago": _ago(kind.paused_at)}
    return _with_reason(_("Paused by %(by)s %(ago)s") % words, kind.pause_reason)


def held(provider: Provider) -> str:
    """A provider's hold: by whom, since when, why."""
    words = {"by": provider.held_by or _("the system"), "ago": _ago(provider.held_at)}
    code = f" ({provider.hold_code})" if provider.hold_code else ""
    return _with_reason(_("Put on hold by %(by)s %(ago)s") % words, mask(provider.hold_reason) + code)


def cooling(provider: Provider) -> str:
    """A provider's rest: until when, why."""
    until = provider.cooling_until
    words = {"time": clock(until), "in": ago_text(until)} if until else {"time": "–", "in": "–"}
    return _with_reason(_("Cooling until %(time)s, %(in)s") % words, provider.cooling_reason)


def no_worker(kind: Kind, crew: Crew) -> str:
    """Why no process picks it up; empty where one may."""
    if crew.runs(kind):
        return ""
    if not crew.alive:
        return _("No worker process is alive: start one with “manage.py qcluster”.")
    return _("No worker runs this kind: no live process knows the handler “%(handler)s”.") % {"handler": kind.handler}


def _with_reason(sentence: str, reason: str) -> str:
    return f"{sentence}: {reason.strip().rstrip('.')}." if reason.strip() else f"{sentence}."


def _ago(when: datetime | None) -> str:
    return ago_text(when) if when else "–"


def held_back(tasks: Collection[Task], crew: Crew) -> dict[object, str]:
    """The obstacle of each task that waits, by id, for a list."""
    waiting = {Status.READY, Status.RETRYABLE, Status.SCHEDULED}
    return {task.pk: words for task in tasks if task.status in waiting and (words := obstacle(task, crew))}
