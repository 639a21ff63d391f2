"""Letters whose tasks hold no call that could run: no door sends them again; their page leads to what is to mend."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django_q.tasks import async_task

from deadletters import triage
from deadletters.models import DeadLetter
from tasks import lifecycle
from tasks.engine.broker import DJANGO_Q_CALL, TaskBroker, ensure_kind
from tasks.engine.schedules import fire_due
from tasks.models import Task
from tests.deadletters import deaths, people
from tests.deadletters.test_page import page_of
from tests.deadletters.test_replay import replay
from tests.deadletters.verb_cases import signed_in
from tests.factories import make_user
from tests.tasks.api.keys import caller

pytestmark = pytest.mark.django_db
UNFIRED = "It has no call that could run: its schedule could not be fired. Mend the schedule, then discard this letter."
NO_CALL = "It has no call that could run. Send the call anew, then discard this letter."


def died(task: Task) -> DeadLetter:
    """The letter of a task of a handler that a worker has claimed and could not run."""
    holder = deaths.worker()
    claimed = lifecycle.claim(holder.pk, 1, [DJANGO_Q_CALL])
    lifecycle.finish(holder.pk, [deaths.end(one) for one in claimed])
    return DeadLetter.objects.get(task=task)


def submitted(payload: Any) -> DeadLetter:
    """The letter of a payload of this kind."""
    ensure_kind()
    return died(lifecycle.submit(DJANGO_Q_CALL, payload))


def of_a_schedule(**fields: Any) -> tuple[Any, DeadLetter]:
    """A schedule that cannot be fired, and the letter that says so."""
    schedules = apps.get_model("django_q", "Schedule")
    due = {"schedule_type": "H", "next_run": timezone.now() - timedelta(hours=2), "args": "1, two", **fields}
    (schedule,) = schedules.objects.bulk_create([schedules(func="math.sqrt", name="roots", **due)])
    assert fire_due() == 1
    return schedule, died(Task.objects.get())


@pytest.mark.parametrize("payload", [{"text": "late"}, {}, ["package"], "package", 7, None], ids=repr)
def test_a_payload_without_a_call_is_not_sent_again(payload: Any) -> None:
    letter = submitted(payload)
    outcome = triage.reprocess([letter.pk], user=people.operator())
    assert (outcome.done, [one.why for one in outcome.skipped]) == ((), [NO_CALL])
    assert deaths.status_of(letter.task_id) == "dead"


@pytest.mark.parametrize("what", ["a call", "a signature that is not ours", "a problem of another kind"])
def test_what_a_new_run_may_find_mended_is_sent_again(what: str) -> None:
    if what == "a call":
        async_task("gone.function", 1, broker=TaskBroker())
        letter = died(Task.objects.get())
    elif what == "a signature that is not ours":
        letter = submitted({"package": "x:y:z"})
    else:
        letter = deaths.letter(payload={"problem": "the parcel is late"})
    assert triage.reprocess([letter.pk], user=people.operator()).done == (letter.pk,)


def test_the_page_refuses_and_leads_to_the_schedule() -> None:
    schedule, letter = of_a_schedule()
    ana = signed_in()
    answer = ana.post(f"/dead-letters/{letter.pk}/reprocess/", headers={"HX-Request": "true"})
    assert UNFIRED in answer.content.decode()
    assert deaths.status_of(letter.task_id) == "dead"
    address = f"/admin/django_q/schedule/{schedule.pk}/change/"

    page = page_of(letter.pk, ana)
    assert UNFIRED in page and "Schedules are mended by a superuser." in page
    assert address not in page and "data-reprocess" not in page and "Reprocess:" not in page
    root = make_superuser()
    page = page_of(letter.pk, root)
    assert address in page and "data-reprocess" not in page and "mended by a superuser" not in page
    assert root.get(address).status_code == 200


def test_a_schedule_for_once_is_gone_and_made_anew() -> None:
    _schedule, letter = of_a_schedule(schedule_type="O", repeats=-1)
    page = page_of(letter.pk, make_superuser())
    assert 'href="/admin/django_q/schedule/"' in page and "/change/" not in page


def test_a_closed_letter_says_first_what_closed_it() -> None:
    _schedule, letter = of_a_schedule()
    triage.discard([letter.pk], user=people.operator(), reason="mended")
    assert "Restore it first." in triage.reprocess([letter.pk], user=people.operator()).skipped[0].why


def test_neither_the_ticked_ones_nor_a_replay_send_it_again() -> None:
    """The others go."""
    _schedule, letter = of_a_schedule()
    first, second = deaths.letter(), deaths.letter()
    ids = [str(letter.pk), str(first.pk)]
    answer = signed_in().post("/dead-letters/reprocess/", {"id": ids}, headers={"HX-Request": "true"})
    assert f"1 letter is sent again. 1 was left as it was: {UNFIRED}" in answer.content.decode()

    assert replay()[-2:] == ["1 reprocessed, 1 skipped.", f"       1 skipped: {UNFIRED}"]
    states = dict(DeadLetter.objects.values_list("pk", "state"))
    assert states == {letter.pk: "open", first.pk: "reprocessed", second.pk: "reprocessed"}


def test_nor_does_the_api() -> None:
    _schedule, letter = of_a_schedule()
    response = caller("operate").post(f"/dead-letters/{letter.pk}/reprocess")
    assert (response.status_code, UNFIRED in response.content.decode()) == (409, True)


def make_superuser() -> Client:
    """Signed in as one who may mend schedules."""
    root = make_user("root", "configure")
    User.objects.filter(pk=root.pk).update(is_superuser=True, is_staff=True)
    client = Client()
    client.force_login(User.objects.get(pk=root.pk))
    return client
