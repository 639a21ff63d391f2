"""What people decide about letters: send them again, close them, open them again. Each for many at once.

Letters are locked before tasks, both in the order of their ids; the engine holds a task when it settles a letter, but
only ever that of an earlier cycle, and triage locks the letter of the cycle that is dead. So the two cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from deadletters.models import DeadLetter, LetterEvent
from deadletters.nothing_to_run import NothingToRun, nothing_to_run
from deadletters.verbs import FROM, TO, Verb, refusal
from tasks import audit, lifecycle
from tasks.audit import Actor

#: Most letters in one decision: what a page can show and a person can have ticked.
MOST_LETTERS = 1_000


class TriageError(ValueError):
    """A decision that was not taken at all, with a sentence that says why."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A letter that was left as it was, and the sentence that says why."""

    id: UUID
    why: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of each letter that was asked for: ids in the order asked."""

    done: tuple[UUID, ...]
    skipped: tuple[Skipped, ...]


def reprocess(letter_ids: Iterable[UUID], *, user: Actor, reason: str = "") -> Outcome:
    """Send open letters again, each with a fresh budget in the next cycle.

    Raises TriageError for more than ``MOST_LETTERS`` letters.
    """
    return _decide(Verb.REPROCESS, letter_ids, user=user, reason=reason)


def discard(letter_ids: Iterable[UUID], *, user: Actor, reason: str) -> Outcome:
    """Close open letters without running their tasks. Raises TriageError without a reason, or for too many letters."""
    if not reason.strip():
        raise TriageError(_("Say why: a discarded letter keeps its reason."))
    return _decide(Verb.DISCARD, letter_ids, user=user, reason=reason)


def restore(letter_ids: Iterable[UUID], *, user: Actor) -> Outcome:
    """Open discarded letters again. Raises TriageError for too many letters."""
    return _decide(Verb.RESTORE, letter_ids, user=user, reason="")


def _decide(verb: Verb, letter_ids: Iterable[UUID], *, user: Actor, reason: str) -> Outcome:
    asked = list(dict.fromkeys(letter_ids))
    if len(asked) > MOST_LETTERS:
        raise TriageError(_("At most %(most)d letters at once; these are %(count)d.") % _numbers(asked))
    reason = reason.strip()
    with transaction.atomic():
        outcome = move(verb, asked, user=user, reason=reason)
        _audit(verb, asked, outcome, user=user, reason=reason)
    return outcome


def move(verb: Verb, asked: Sequence[UUID], *, user: Actor, reason: str) -> Outcome:
    """Move the letters, in one transaction. For actions that write an audit row of their own: this writes none."""
    with transaction.atomic():
        futile = nothing_to_run(asked) if verb == Verb.REPROCESS else {}
        won = _won(verb, _lock([letter_id for letter_id in asked if letter_id not in futile], verb), user)
        _move(won, verb, user=user, reason=reason)
        skipped = _skipped([letter_id for letter_id in asked if letter_id not in won], verb, futile)
    return Outcome(tuple(letter_id for letter_id in asked if letter_id in won), skipped)


def _lock(asked: Sequence[UUID], verb: Verb) -> dict[UUID, UUID]:
    """Lock the letters that the verb may move: letter → task. Who waited here for a faster one finds it moved."""
    rows = DeadLetter.objects.select_for_update().filter(id__in=asked, state=FROM[verb]).order_by("id")
    return dict(rows.values_list("id", "task_id"))


def _won(verb: Verb, locked: dict[UUID, UUID], user: Actor) -> set[UUID]:
    if verb != Verb.REPROCESS or not locked:
        return set(locked)
    moved = lifecycle.reprocess(sorted(locked.values()), actor=user.get_username())
    return {letter_id for letter_id, task_id in locked.items() if task_id in moved}


def _move(won: set[UUID], verb: Verb, *, user: Actor, reason: str) -> None:
    DeadLetter.objects.filter(id__in=won).update(
        state=TO[verb],
        state_at=Now(),
        handled_by=user if isinstance(user, User) else None,
        discard_reason=reason if verb == Verb.DISCARD else "",
    )
    LetterEvent.objects.bulk_create(
        LetterEvent(
            letter_id=letter_id,
            from_state=FROM[verb],
            to_state=TO[verb],
            actor=user.get_username(),
            reason=reason,
        )
        for letter_id in sorted(won)
    )


def _skipped(left: Sequence[UUID], verb: Verb, futile: Mapping[UUID, NothingToRun]) -> tuple[Skipped, ...]:
    found = DeadLetter.objects.select_related("handled_by").defer("failure", "last_error").in_bulk(left)
    return tuple(Skipped(letter_id, _why(found.get(letter_id), verb, futile.get(letter_id))) for letter_id in left)


def _why(letter: DeadLetter | None, verb: Verb, futile: NothingToRun | None) -> str:
    if letter is None:
        return _("There is no such letter.")
    return refusal(letter, verb) or (futile.why if futile else _("Its task is not dead any more."))


def _audit(verb: Verb, asked: Sequence[UUID], outcome: Outcome, *, user: Actor, reason: str) -> None:
    one = len(asked) == 1
    audit.record(
        user,
        f"{verb}_letter" if one else f"{verb}_letters",
        target_type="letter",
        target_id=asked[0] if one else "",
        reason=reason,
        count=len(outcome.done),
        filter=None if one else {"ids": [str(letter_id) for letter_id in asked]},
        outcome=_outcome(verb, asked, outcome),
        data={
            "done": [str(letter_id) for letter_id in outcome.done],
            "skipped": {str(skipped.id): skipped.why for skipped in outcome.skipped},
        },
    )


def _outcome(verb: Verb, asked: Sequence[UUID], outcome: Outcome) -> str:
    if len(asked) == 1:
        return TO[verb].value if outcome.done else f"nothing done: {outcome.skipped[0].why}"
    return f"{len(outcome.done)} of {len(asked)} {TO[verb]}"


def _numbers(asked: Sequence[UUID]) -> dict[str, int]:
    return {"most": MOST_LETTERS, "count": len(asked)}
