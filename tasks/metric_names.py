"""The metrics: their names, labels and meaning, for ``/metrics`` and for the help page that explains them."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. ``tally``: the maintained count behind it, where it is one that only grows."""

    name: str
    words: str | Promise
    labels: tuple[str, ...] = ()
    tally: str = ""


FAMILIES = (
    Family("redrive_tasks", _("Tasks at this moment"), ("kind", "status")),
    Family("redrive_tasks_submitted_total", _("Tasks submitted"), ("kind",), "submitted"),
    Family("redrive_tasks_ended_total", _("Tasks that reached an end"), ("kind", "status", "code"), "ended"),
    Family(
        "redrive_attempts_ended_total", _("Attempts that ended; lost: rescued"), ("kind", "outcome", "code"), "attempts"
    ),
    Family("redrive_attempt_seconds", _("How long attempts took, a histogram"), ("kind",)),
    Family("redrive_input_tokens_total", _("Tokens sent to models"), ("kind",), "input_tokens"),
    Family("redrive_output_tokens_total", _("Tokens received from models"), ("kind",), "output_tokens"),
    Family("redrive_cost_usd_total", _("What model calls cost, USD"), ("kind",), "cost"),
    Family(
        "redrive_queue_age_seconds",
        _("Age of the task that would be claimed next; no sample where none is ready"),
        ("kind", "provider"),
    ),
    Family("redrive_processes", _("Live processes"), ("role",)),
    Family("redrive_slots", _("Slots of live workers")),
    Family("redrive_slots_busy", _("Slots in use, as of the last heartbeats")),
    Family("redrive_stopped", _("1 while a kind is paused, a provider held or cooling"), ("what", "name", "how")),
)
BY_NAME = {family.name: family for family in FAMILIES}
COUNTERS = {family.tally: family for family in FAMILIES if family.tally}
