"""Letters on other pages: those of a task, and the number of open ones."""

from __future__ import annotations

from typing import Any

from django import template

from deadletters.models import DeadLetter
from deadletters.querysets import ALIKE_CAP
from tasks.models import Task

register = template.Library()

#: Letters of one task shown; the newest of them.
MOST_LETTERS = 20


@register.inclusion_tag("deadletters/task_letters.html")
def task_letters(task: Task) -> dict[str, Any]:
    """The letters of a task, the newest cycle first, with who decided what about each; nothing where it has none."""
    letters = DeadLetter.objects.filter(task=task).select_related("handled_by").defer("failure", "last_error")
    return {"letters": list(letters.order_by("-cycle")[:MOST_LETTERS])}


@register.simple_tag
def open_letter_count() -> int:
    """How many letters wait for a person, counted no further than ``ALIKE_CAP`` + 1."""
    return DeadLetter.objects.open().count_to(ALIKE_CAP)


@register.simple_tag
def letter_cap() -> int:
    """How far ``open_letter_count`` counts."""
    return ALIKE_CAP
