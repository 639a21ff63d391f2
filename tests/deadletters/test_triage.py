"""What people decide: the whole (state × verb) table, the audit row, and two people at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from deadletters import triage
from deadletters.models import DeadLetter
from deadletters.triage import Outcome, TriageError
from deadletters.verbs import FROM, Verb, refusal
from tasks import lifecycle
from tasks.models import OperatorAction, Task
from tasks.states import LetterState
from tests.deadletters import deaths, people

ACT: dict[Verb, Callable[[list[UUID], User], Outcome]] = {
    Verb.REPROCESS: lambda ids, user: triage.reprocess(ids, user=user, reason="the provider is back"),
    Verb.DISCARD: lambda ids, user: triage.discard(ids, user=user, reason="a duplicate"),
    Verb.RESTORE: lambda ids, user: triage.restore(ids, user=user),
}


@pytest.mark.django_db
@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("state", LetterState)
def test_each_verb_in_each_state(state: LetterState, verb: Verb) -> None:
    letter = deaths.letter(state=state)
    before = (letter.state, letter.state_at, deaths.status_of(letter.task_id))

    outcome = ACT[verb]([letter.id], people.operator("bo"))

    after = DeadLetter.objects.get(pk=letter.pk)
    if FROM[verb] == state:
        expected = {"reprocess": "reprocessed", "discard": "discarded", "restore": "open"}[verb]
        assert (outcome.done, outcome.skipped, after.state) == ((letter.id,), (), expected)
        assert after.handled_by == people.operator("bo")
    else:
        assert outcome.done == ()
        assert outcome.skipped[0].why == refusal(letter, verb) != ""
        assert (after.state, after.state_at, deaths.status_of(after.task_id)) == before


@pytest.mark.django_db
def test_reprocess_begins_the_next_cycle_with_a_fresh_budget() -> None:
    letter = deaths.letter()
    triage.reprocess([letter.id], user=people.operator(), reason="the key is new")

    task = Task.objects.get(pk=letter.task_id)
    assert (task.status, task.cycle, task.failures) == ("ready", 2, 0)
    assert task.events.get(type="reprocessed").actor == "ana"
    move = letter.events.last()
    assert (move.from_state, move.to_state, move.actor, move.reason) == ("open", "reprocessed", "ana", "the key is new")


@pytest.mark.django_db
def test_a_discard_keeps_its_reason_and_a_restore_ends_it() -> None:
    letter = deaths.letter()
    triage.discard([letter.id], user=people.operator(), reason="  a test ticket ")
    letter.refresh_from_db()
    assert (letter.state, letter.discard_reason) == ("discarded", "a test ticket")
    assert deaths.status_of(letter.task_id) == "dead"

    triage.restore([letter.id], user=people.operator("bo"))
    letter.refresh_from_db()
    assert (letter.state, letter.discard_reason, letter.handled_by.username) == ("open", "", "bo")
    assert list(letter.events.values_list("to_state", "reason")) == [
        ("open", ""),
        ("discarded", "a test ticket"),
        ("open", ""),
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("reason", ["", "  \n"])
def test_a_discard_without_a_reason_is_refused(reason: str) -> None:
    letter = deaths.letter()
    with pytest.raises(TriageError, match="Say why"):
        triage.discard([letter.id], user=people.operator(), reason=reason)
    letter.refresh_from_db()
    assert letter.state == "open"


@pytest.mark.django_db
def test_many_at_once_each_gets_its_answer_and_the_audit_one_row() -> None:
    letters = [deaths.letter() for _ in range(3)]
    gone = deaths.letter(state="recovered")
    unknown = uuid4()
    asked = [letters[2].id, gone.id, letters[0].id, unknown, letters[1].id, letters[0].id]

    outcome = triage.reprocess(asked, user=people.operator(), reason="fixed")

    assert outcome.done == (letters[2].id, letters[0].id, letters[1].id)
    assert {skipped.id: skipped.why for skipped in outcome.skipped} == {
        gone.id: "It was sent again and succeeded; there is nothing left to do.",
        unknown: "There is no such letter.",
    }
    row = OperatorAction.objects.first()
    assert (row.action, row.target_type, row.target_id) == ("reprocess_letters", "letter", "")
    assert (row.count, row.reason, row.username, row.outcome) == (3, "fixed", "ana", "3 of 5 reprocessed")
    assert row.filter == {"ids": [str(letter_id) for letter_id in dict.fromkeys(asked)]}
    assert row.data["done"] == [str(letter_id) for letter_id in outcome.done]


@pytest.mark.django_db
def test_what_changed_nothing_is_audited_too() -> None:
    letter = deaths.letter(state="discarded")
    triage.reprocess([letter.id], user=people.operator())
    row = OperatorAction.objects.first()
    assert (row.action, row.target_id, row.count) == ("reprocess_letter", str(letter.id), 0)
    assert row.outcome.startswith("nothing done: ana discarded it at ")


@pytest.mark.django_db
def test_too_many_at_once_are_refused_whole() -> None:
    with pytest.raises(TriageError, match="At most 1000 letters at once; these are 1001"):
        triage.reprocess([uuid4() for _ in range(1001)], user=people.operator())
    assert not OperatorAction.objects.exists()


@pytest.mark.django_db
def test_a_letter_whose_task_was_sent_again_behind_its_back_is_left_alone() -> None:
    letter = deaths.letter()
    lifecycle.reprocess([letter.task_id], actor="a script")
    outcome = triage.reprocess([letter.id], user=people.operator())
    assert outcome.skipped[0].why == "Its task is not dead any more."
    letter.refresh_from_db()
    assert letter.state == "open"


@pytest.mark.django_db(transaction=True)
def test_of_two_people_one_wins_and_the_other_is_told_who_was_first() -> None:
    letter = deaths.letter()
    second_asks = threading.Event()
    outcomes: dict[str, Outcome] = {}

    def second() -> None:
        try:
            second_asks.set()
            outcomes["bo"] = triage.reprocess([letter.id], user=people.operator("bo"))
        finally:
            connection.close()

    people.operator("bo")
    with transaction.atomic():
        outcomes["ana"] = triage.reprocess([letter.id], user=people.operator("ana"))
        thread = threading.Thread(target=second)
        thread.start()
        assert second_asks.wait(5)
        wait_until_somebody_waits_for_a_lock()
        assert "bo" not in outcomes
    thread.join(10)

    assert outcomes["ana"].done == (letter.id,)
    assert outcomes["bo"].done == ()
    assert outcomes["bo"].skipped[0].why.startswith("ana sent it again at ")
    assert Task.objects.get(pk=letter.task_id).cycle == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("first", "then"), [("reprocess", "discard"), ("discard", "reprocess")])
def test_different_verbs_at_once_leave_one_story(first: str, then: str) -> None:
    letter = deaths.letter()
    people.operator("bo")
    outcome: list[Outcome] = []

    def second() -> None:
        try:
            outcome.append(ACT[Verb(then)]([letter.id], people.operator("bo")))
        finally:
            connection.close()

    with transaction.atomic():
        ACT[Verb(first)]([letter.id], people.operator("ana"))
        thread = threading.Thread(target=second)
        thread.start()
        wait_until_somebody_waits_for_a_lock()
    thread.join(10)

    letter.refresh_from_db()
    assert letter.state == {"reprocess": "reprocessed", "discard": "discarded"}[first]
    assert deaths.status_of(letter.task_id) == {"reprocess": "ready", "discard": "dead"}[first]
    assert outcome[0].done == ()


@pytest.mark.django_db(transaction=True)
def test_crossing_batches_do_not_deadlock() -> None:
    letters = [deaths.letter().id for _ in range(20)]
    people.operator("bo")
    outcomes: list[Outcome] = []
    start = threading.Barrier(2)

    def press(name: str, ids: list[UUID]) -> None:
        try:
            start.wait(5)
            outcomes.append(triage.reprocess(ids, user=people.operator(name)))
        finally:
            connection.close()

    threads = [
        threading.Thread(target=press, args=("ana", letters)),
        threading.Thread(target=press, args=("bo", letters[::-1])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    done = [letter_id for outcome in outcomes for letter_id in outcome.done]
    assert sorted(done) == sorted(letters)
    assert set(Task.objects.values_list("cycle", flat=True)) == {2}


@pytest.mark.django_db(transaction=True)
def test_a_decision_that_fails_half_way_leaves_nothing() -> None:
    letter = deaths.letter()
    user = people.operator()
    user.username = "x" * 200  # longer than the history's column: the last write of the decision is refused

    with pytest.raises(Exception, match="too long"):
        triage.reprocess([letter.id], user=user)

    letter.refresh_from_db()
    assert (letter.state, deaths.status_of(letter.task_id)) == ("open", "dead")
    assert not OperatorAction.objects.exists()


def wait_until_somebody_waits_for_a_lock() -> None:
    """Return once another session of this database waits for a lock; fail after ten seconds."""
    with connection.cursor() as cursor:
        cursor.execute(
            """DO $$ BEGIN
                 FOR i IN 1..1000 LOOP
                   PERFORM pg_stat_clear_snapshot();
                   IF EXISTS (SELECT 1 FROM pg_stat_activity
                              WHERE datname = current_database() AND wait_event_type = 'Lock') THEN RETURN; END IF;
                   PERFORM pg_sleep(0.01);
                 END LOOP;
                 RAISE EXCEPTION 'nobody waited for a lock';
               END $$"""
        )
