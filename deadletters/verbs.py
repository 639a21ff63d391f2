"""What a person may do to a letter in which state, and the sentence that says why not.

| verb      | from      | to          |
|-----------|-----------|-------------|
| reprocess | open      | reprocessed |
| discard   | open      | discarded   |
| restore   | discarded | open        |
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from tasks.states import LetterState
from tasks.words import local_time

if TYPE_CHECKING:
    from deadletters.models import DeadLetter


class Verb(StrEnum):
    """What a person does to a letter."""

    REPROCESS = "reprocess"
    DISCARD = "discard"
    RESTORE = "restore"


FROM = {
    Verb.REPROCESS: LetterState.OPEN,
    Verb.DISCARD: LetterState.OPEN,
    Verb.RESTORE: LetterState.DISCARDED,
}
TO = {
    Verb.REPROCESS: LetterState.REPROCESSED,
    Verb.DISCARD: LetterState.DISCARDED,
    Verb.RESTORE: LetterState.OPEN,
}


def allowed(letter: DeadLetter, verb: Verb) -> bool:
    """Whether the letter's state allows the verb. Pure: permission and the task are asked elsewhere."""
    return letter.state == FROM[verb]


def refusal(letter: DeadLetter, verb: Verb) -> str:
    """Why the letter's state does not allow the verb, naming who was first; empty where it does."""
    if allowed(letter, verb):
        return ""
    return _WHY[LetterState(letter.state)](letter)


def _is_open(letter: DeadLetter) -> str:
    if letter.handled_by:
        return _("%(who)s restored it %(when)s; it is open.") % _who_and_when(letter)
    return _("It is open already.")


def _was_reprocessed(letter: DeadLetter) -> str:
    return _("%(who)s sent it again %(when)s; its task has not ended yet.") % _who_and_when(letter)


def _was_discarded(letter: DeadLetter) -> str:
    return _("%(who)s discarded it %(when)s. Restore it first.") % _who_and_when(letter)


def _recovered(letter: DeadLetter) -> str:
    return _("It was sent again and succeeded; there is nothing left to do.")


def _died_again(letter: DeadLetter) -> str:
    return _("It was sent again and died again: act on the letter of the later cycle.")


def _cancelled(letter: DeadLetter) -> str:
    return _("It was sent again and its task was cancelled; that is final.")


_WHY: dict[LetterState, Callable[[DeadLetter], str]] = {
    LetterState.OPEN: _is_open,
    LetterState.REPROCESSED: _was_reprocessed,
    LetterState.DISCARDED: _was_discarded,
    LetterState.RECOVERED: _recovered,
    LetterState.DIED_AGAIN: _died_again,
    LetterState.CANCELLED: _cancelled,
}


def _who_and_when(letter: DeadLetter) -> dict[str, str]:
    who = letter.handled_by.get_username() if letter.handled_by else _("Somebody")
    at = local_time(letter.state_at)
    when = _("at %(time)s on %(day)s") % {"time": date_format(at, "H:i:s"), "day": date_format(at, "DATE_FORMAT")}
    return {"who": who, "when": when}
