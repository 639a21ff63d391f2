"""The small parts of every page: badges, times, durations, money, ids, masked text."""

from __future__ import annotations

import json
import re
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tasks import icons
from tasks.models import OperatorAction, Task
from tasks.states import Status
from tasks.views.document import indented, masked_text
from tasks.words import TONES, ago_text, clock, span, whole, word

register = template.Library()

UUID_TEXT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: What an action was done to, as people call it.
TARGETS: dict[str, str | Promise] = {
    "task": gettext_lazy("task"),
    "letter": gettext_lazy("letter"),
    "kind": gettext_lazy("kind"),
    "provider": gettext_lazy("provider"),
    "errorcode": gettext_lazy("error code"),
    "errorrule": gettext_lazy("error rule"),
    "promptversion": gettext_lazy("prompt version"),
    "configuration": gettext_lazy("configuration"),
    "user": gettext_lazy("user"),
    "group": gettext_lazy("group"),
    "schedule": gettext_lazy("schedule"),
}


@register.simple_tag
def icon(name: str) -> SafeString:
    """An inline SVG of 16 × 16, drawn in the text's colour; hidden from screen readers (its word stands beside it)."""
    return mark_safe(  # noqa: S308 - the paths are ours
        f'<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">{icons.PATHS[name]}</svg>'
    )


@register.simple_tag
def badge(value: str) -> SafeString:
    """A status, outcome or letter state: icon, word and colour."""
    tone, picture = TONES.get(value, ("wait", "dot"))
    return format_html('<span class="badge is-{}">{}{}</span>', tone, icon(picture), word(value))


@register.filter(name="word")
def word_of(value: str) -> str:
    """The translated word for a status, outcome, reason, state or event type."""
    return word(value)


@register.filter
def tone(value: str) -> str:
    """The colour family of a status, outcome or state: ok, run, wait, warn, bad or odd."""
    return TONES.get(value, ("wait", "dot"))[0]


@register.simple_tag
def moment(when: datetime | None) -> SafeString | str:
    """A point in time as text in the operator's zone: the time of day today, else with its date. Whole on hover."""
    if when is None:
        return "–"
    return _time(when, clock(when))


@register.simple_tag
def ago(when: datetime | None) -> SafeString | str:
    """A point in time as its distance from now (“5 min ago”, “in 14 s”). Whole on hover."""
    if when is None:
        return "–"
    return _time(when, ago_text(when))


@register.simple_tag
def due(when: datetime) -> SafeString:
    """A point in time ahead as its distance (“in 14 s”); one that has come as “now”."""
    return _time(when, _("now") if when <= timezone.now() else ago_text(when))


def _time(when: datetime, shown: str) -> SafeString:
    return format_html('<time datetime="{}" title="{}">{}</time>', when.isoformat(), whole(when), shown)


register.filter("span", span)


@register.filter
def milliseconds(value: int | None) -> str:
    """A duration given in milliseconds."""
    return span(None if value is None else value / 1000)


@register.filter
def money(amount: Decimal | None) -> str:
    """US dollars: as many digits as small sums need, none where nothing was spent."""
    if not amount:
        return "–"
    if amount >= 1:
        return f"${amount:,.2f}"
    return f"${amount:.4f}" if amount >= Decimal("0.0001") else "<$0.0001"


@register.filter
def capped(count: int, cap: int = 10_000) -> str:
    """A count that was read up to ``cap`` + 1: “10,000+” beyond it."""
    return f"{cap:,}+" if count > cap else f"{count:,}"


@register.simple_tag
def times(count: int) -> str:
    """“once”, “3 times”."""
    return _("once") if count == 1 else ngettext("%(n)d time", "%(n)d times", count) % {"n": count}


@register.inclusion_tag("components/id.html")
def copy_id(value: object, href: str = "", short: bool = True) -> dict[str, Any]:
    """An id that copies on click. Short: its last eight characters, because ids of one minute begin alike."""
    text = str(value)
    return {"value": text, "shown": text[-8:] if short and len(text) > 12 else text, "href": href}


@register.inclusion_tag("components/target.html")
def target(action: OperatorAction) -> dict[str, Any]:
    """What an action of a person was done to: its sort, its id or name, and its page where it has one."""
    sort, id_ = action.target_type, action.target_id
    pages = {"task": "task", "letter": "dead-letter"}
    is_uuid = UUID_TEXT.fullmatch(id_) is not None
    if is_uuid and sort in pages:
        href = reverse(pages[sort], args=[id_])
    else:
        href = f"{reverse('kinds')}#{sort}-{id_}" if sort in ("kind", "provider") else ""
    return {"what": TARGETS.get(sort, sort), "id": id_, "is_uuid": is_uuid, "href": href}


@register.filter
def grouped(number: int | None) -> str:
    """A whole number with its thousands set apart: 12,345."""
    return "" if number is None else f"{number:,}"


@register.filter
def foreign(exception: str | None) -> str:
    """The class of an exception, empty for one of our own faults: the error's text names those already."""
    return "" if not exception or exception.startswith("tasks.errors.faults.") else exception


@register.filter
def masked(value: Any) -> str:
    """Any value as text for display: JSON indented, secrets and personal data masked, cut where it is very long."""
    return masked_text(as_text(value))


def as_text(value: Any) -> str:
    """A stored JSON value as a person reads it: a text as itself, all else as indented JSON."""
    if isinstance(value, str):
        return value
    try:
        return indented(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return _("(nested too deeply to be shown)")


@register.filter
def attempt_number(task: Task) -> int:
    """Which attempt of its cycle a task is at: the one under way, or the last that counted; 0 before the first."""
    under_way = task.status in (Status.RUNNING, Status.SUCCEEDED)
    return task.failures + under_way
