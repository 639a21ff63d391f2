"""What the words of a letter mean, as sentences for people."""

from __future__ import annotations

from functools import cache

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

from tasks.errors import Failure, fingerprint
from tasks.states import LetterState, Reason

REASONS: dict[Reason, str | Promise] = {
    Reason.ATTEMPTS_EXHAUSTED: _("Every attempt that its budget allows has failed."),
    Reason.NOT_RETRYABLE: _("The error is one that trying again cannot mend."),
    Reason.DEADLINE_EXCEEDED: _("The next attempt would have started after its deadline."),
    Reason.EXPIRED: _("It expired before it could start."),
    Reason.OUTCOME_UNKNOWN: _("Its worker vanished while it ran, so nobody knows whether the work was done."),
    Reason.LEASE_EXPIRED: _("Again and again the process that ran it died."),
    Reason.VETOED: _("Its own check before a retry refused another attempt."),
    Reason.UNSTORABLE: _("It ran, but its result could not be stored."),
    Reason.COMPENSATION_FAILED: _("Undoing its earlier steps failed."),
}

STATE_SENTENCES: dict[LetterState, str | Promise] = {
    LetterState.OPEN: _("It waits for a decision."),
    LetterState.REPROCESSED: _("It was sent again and has not ended yet."),
    LetterState.RECOVERED: _("It was sent again and succeeded."),
    LetterState.DIED_AGAIN: _("It was sent again and died again."),
    LetterState.CANCELLED: _("It was sent again and then cancelled."),
    LetterState.DISCARDED: _("It was closed without running again."),
}


@cache
def stored_reasons() -> dict[str, dict[str, str]]:
    """What the database keeps of a death that no attempt explains: by reason its ``text`` and ``fingerprint``.

    In English, whatever the language of the moment.
    """
    with override(None):
        return {reason.value: _stored(reason, str(sentence)) for reason, sentence in REASONS.items()}


def _stored(reason: Reason, text: str) -> dict[str, str]:
    failure = Failure(exception=f"redrive.{reason}", message=text)
    return {"text": text, "fingerprint": fingerprint(failure).digest}
