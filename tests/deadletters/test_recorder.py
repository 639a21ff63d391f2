"""What a death leaves behind, and that it leaves it in the same transaction."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from deadletters import triage
from deadletters.models import DeadLetter, LetterEvent
from deadletters.recorder import LetterRecorder
from tasks import lifecycle
from tasks.models import Attempt, Task
from tasks.states import LetterState, Outcome, Reason, Status
from tests.deadletters import deaths, people

pytestmark = pytest.mark.django_db


def test_a_death_leaves_one_open_letter_with_what_was_known() -> None:
    task = deaths.submit({"text": "late"}, session_id="s-1", user_id="u-1", trace_id="t-1")
    deaths.run(outcome=Outcome.FAILED, action="retry", reason=None, cost="0.25")
    lifecycle.make_due()
    deaths.run(reason=Reason.ATTEMPTS_EXHAUSTED, cost="0.50")

    letter = deaths.letter_of(task.id)
    assert (letter.state, letter.cycle, letter.reason) == ("open", 1, "attempts_exhausted")
    assert (letter.error_code, letter.fingerprint) == ("AI_PROVIDER_ERROR", "f" * 40)
    assert letter.title == "the model is on fire"
    assert letter.last_error == "InternalServerError: 500: the model is on fire"
    assert letter.failure is not None
    assert letter.failure["http_status"] == 500
    assert (letter.kind_id, letter.provider_id) == ("ticket.triage", "acme")
    assert (letter.session_id, letter.user_id, letter.trace_id) == ("s-1", "u-1", "t-1")
    assert letter.attempts == 2
    assert letter.cost == Decimal("0.75")
    assert letter.id.version == 7


def test_uncounted_attempts_are_not_counted_but_what_they_cost_is() -> None:
    task = deaths.submit()
    deaths.run(outcome=Outcome.SNOOZED, action="snooze", failed=deaths.FAILED, cost="0.10")
    lifecycle.make_due()
    deaths.run(cost="0.20")

    letter = deaths.letter_of(task.id)
    assert letter.attempts == 1
    assert letter.cost == Decimal("0.30")


def test_the_letter_of_a_later_cycle_counts_that_cycle_only() -> None:
    task = deaths.submit()
    deaths.run(cost="5")
    lifecycle.reprocess([task.id], actor="ana")
    deaths.run(cost="0.10")

    letter = deaths.letter_of(task.id, cycle=2)
    assert (letter.attempts, letter.cost) == (1, Decimal("0.10"))


def test_a_task_that_expired_before_its_first_attempt_says_so_in_words() -> None:
    task = deaths.submit(expires_at=timezone.now() - timedelta(seconds=1))
    lifecycle.expire()

    letter = deaths.letter_of(task.id)
    assert letter.reason == "expired"
    assert letter.title == letter.last_error == "It expired before it could start."
    assert (letter.error_code, letter.attempts, letter.failure) == ("", 0, None)
    assert letter.provider_id == "acme"


def test_such_letters_are_alike_and_can_be_found_together() -> None:
    first, second = (deaths.submit(expires_at=timezone.now() - timedelta(seconds=1)) for _ in range(2))
    lifecycle.expire()
    assert deaths.letter_of(first.id).fingerprint == deaths.letter_of(second.id).fingerprint != ""


def test_the_words_of_the_database_are_english_in_every_language() -> None:
    task = deaths.submit(expires_at=timezone.now() - timedelta(seconds=1))
    with translation.override("zh-hans"):
        lifecycle.expire()
    assert deaths.letter_of(task.id).last_error == "It expired before it could start."


def test_an_attempt_handed_back_at_a_drain_does_not_hide_the_error_before_it() -> None:
    task = deaths.submit(expires_at=timezone.now() + timedelta(hours=1))
    deaths.run(action="retry", reason=None)
    lifecycle.make_due()
    deaths.run(outcome=Outcome.INTERRUPTED, started=False)
    Task.objects.filter(pk=task.id).update(expires_at=timezone.now() - timedelta(seconds=1))
    lifecycle.expire()

    letter = deaths.letter_of(task.id)
    assert letter.reason == "expired"
    assert letter.last_error == "InternalServerError: 500: the model is on fire"
    assert letter.error_code == "AI_PROVIDER_ERROR"


def test_a_title_is_cut_to_what_the_column_holds() -> None:
    task = deaths.submit()
    deaths.run(failed=deaths.failed(title="x" * 1000))
    assert deaths.letter_of(task.id).title == "x" * 300


def test_dying_again_settles_the_letter_before_it() -> None:
    task = deaths.submit()
    deaths.run()
    first = deaths.letter_of(task.id)
    triage.reprocess([first.id], user=people.operator())
    deaths.run()

    first.refresh_from_db()
    assert first.state == "died_again"
    assert deaths.letter_of(task.id, cycle=2).state == "open"


@pytest.mark.parametrize(("status", "state"), [("succeeded", "recovered"), ("cancelled", "cancelled")])
def test_a_later_end_settles_the_letter(status: str, state: str) -> None:
    letter = deaths.letter(state=state)
    assert letter.state == state
    assert deaths.status_of(letter.task_id) == status


def test_a_first_cycle_that_succeeds_touches_no_letter() -> None:
    deaths.submit()
    deaths.succeed()
    assert not DeadLetter.objects.exists()


def test_every_move_of_a_letter_is_a_row() -> None:
    letter = deaths.letter(state="recovered")
    moves = list(letter.events.values_list("from_state", "to_state", "actor"))
    assert moves == [("", "open", ""), ("open", "reprocessed", "ana"), ("reprocessed", "recovered", "")]


def test_a_row_of_that_history_is_never_changed() -> None:
    deaths.letter()
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        LetterEvent.objects.update(reason="better")


def test_a_death_whose_letter_cannot_be_written_did_not_happen() -> None:
    task = deaths.submit()
    holder, (claimed,) = deaths.claim()

    # The letter of this cycle is there already, so the recorder's INSERT breaks a constraint.
    DeadLetter.objects.create(task=task, cycle=1, kind_id=task.kind_id, reason=Reason.EXPIRED)
    with pytest.raises(IntegrityError, match="letter_once_per_cycle"), transaction.atomic():
        lifecycle.finish(holder.pk, [deaths.end(claimed)])

    assert deaths.status_of(task.id) == Status.RUNNING
    assert Attempt.objects.get(pk=claimed.attempt_id).outcome == "running"
    assert not task.events.filter(type="died").exists()


def test_a_letter_that_would_be_missing_is_an_error() -> None:
    task = deaths.submit()
    with pytest.raises(RuntimeError, match="2 tasks died, but 0 dead letters could be written"), transaction.atomic():
        LetterRecorder().record_deaths([task.id, uuid4()])


def test_a_batch_costs_as_many_statements_as_one_death() -> None:
    for _ in range(20):
        deaths.submit()
    holder, claimed = deaths.claim(20)
    lifecycle.finish(holder.pk, [deaths.end(one) for one in claimed[:10]])
    ids = list(DeadLetter.objects.values_list("task_id", flat=True))
    LetterEvent.objects.all().delete()
    DeadLetter.objects.all().delete()

    with CaptureQueriesContext(connection) as queries:
        LetterRecorder().record_deaths(ids)
    assert len(queries) == 2
    assert DeadLetter.objects.count() == LetterEvent.objects.count() == 10


def test_nothing_asks_the_database_for_nothing() -> None:
    with CaptureQueriesContext(connection) as queries:
        LetterRecorder().record_deaths([])
        LetterRecorder().record_ends([])
    assert len(queries) == 0


def test_a_lost_worker_is_told_by_reason_and_code() -> None:
    refund = deaths.kind("refund", safe_to_rerun=False)
    task = deaths.submit(of=refund)
    holder, _ = deaths.claim()
    holder.exit_seen_at = timezone.now()
    holder.save()
    lifecycle.mark_lost(leases_count=False)
    lifecycle.rescue()

    letter = deaths.letter_of(task.id)
    assert (letter.reason, letter.error_code) == ("outcome_unknown", "AI_WORKER_LOST")
    assert "vanished" in letter.last_error
    assert letter.attempts == 0


def test_a_reprocessed_task_that_expires_again_without_attempt_names_the_state_it_left() -> None:
    letter = deaths.letter(state="reprocessed")
    Task.objects.filter(pk=letter.task_id).update(expires_at=timezone.now() - timedelta(seconds=1))
    lifecycle.expire()

    letter.refresh_from_db()
    assert letter.state == LetterState.DIED_AGAIN
    second = deaths.letter_of(letter.task_id, cycle=2)
    # Nothing of cycle 1 is passed off as the error of cycle 2.
    assert (second.last_error, second.error_code) == ("It expired before it could start.", "")
