"""Letters of tasks that hold nothing to run, so that no run of them can end otherwise: Reprocess is refused.

Only of calls of django-q2, and only where the stored payload says so, which nobody changes: the task in the place of a
schedule that could not be fired has the reason (``problem``), and one that was submitted by hand may have no call
(``package``). All else that can be wrong with a call lies outside of its task, where a new run may find it mended: a
deployment brings a function that was not there, did not import or took other arguments, and a class that could not be
unpacked; the right SECRET_KEY the signature.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q, TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from deadletters.models import DeadLetter
from tasks.engine.broker import DJANGO_Q_CALL


@dataclass(frozen=True, slots=True)
class NothingToRun:
    """Why there is nothing, for people; and the id of the schedule that made the task, where one did."""

    why: str
    schedule: int | None = None


def nothing_to_run(letter_ids: Iterable[UUID]) -> dict[UUID, NothingToRun]:
    """Those among the letters whose tasks hold nothing to run."""
    calls = DeadLetter.objects.among(letter_ids).filter(kind=DJANGO_Q_CALL)
    told = calls.annotate(problem=_text("problem"), package=_text("package"))
    rows = told.filter(~Q(problem="") | Q(package="")).values_list("id", "task__payload__schedule")
    return {letter_id: _told(schedule) for letter_id, schedule in rows}


def _text(key: str) -> Coalesce:
    """Of a payload that is no object, too; an element or a text that is called like the key is none."""
    return Coalesce(KeyTextTransform(key, "task__payload"), Value(""), output_field=TextField())


def _told(schedule: object) -> NothingToRun:
    if isinstance(schedule, int):
        why = _(
            "It has no call that could run: its schedule could not be fired."
            " Mend the schedule, then discard this letter."
        )
        return NothingToRun(why, schedule)
    return NothingToRun(_("It has no call that could run. Send the call anew, then discard this letter."))
