"""``manage.py replay``: what matches, once, with exact counts and an audit."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from deadletters.models import DeadLetter
from deadletters.replay.run import Replay
from tasks import lifecycle
from tasks.models import OperatorAction, Task
from tests.deadletters import deaths, people


def replay(*arguments: str) -> list[str]:
    out = io.StringIO()
    call_command("replay", *arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue().splitlines()


def letters(count: int, **options: Any) -> list[DeadLetter]:
    return [deaths.letter(**options) for _number in range(count)]


def states() -> list[str]:
    return list(DeadLetter.objects.order_by("pk").values_list("state", flat=True))


@pytest.mark.django_db
def test_all_open_letters() -> None:
    letters(3)
    deaths.letter(state="discarded")
    assert replay("--reason", "mended") == [
        "       3 ticket.triage AI_PROVIDER_ERROR",
        "3 open letters match.",
        "3 reprocessed, 0 skipped.",
    ]
    assert states() == ["reprocessed"] * 3 + ["discarded"]
    assert set(Task.objects.filter(status="ready").values_list("cycle", flat=True)) == {2}
    start, end = OperatorAction.objects.filter(action__in=["start_replay", "replay_letters"]).order_by("id")
    assert (start.outcome, start.reason, start.filter) == ("started", "mended", {})
    assert (end.count, end.outcome) == (3, "done: 3 reprocessed, 0 skipped")
    assert end.username.endswith("(replay)")


@pytest.mark.django_db
def test_a_dry_run_changes_nothing() -> None:
    letters(2)
    assert replay("--dry-run")[-2:] == ["2 open letters match.", "Nothing was changed."]
    assert states() == ["open"] * 2 and not OperatorAction.objects.filter(action__contains="replay").exists()


@pytest.mark.django_db
def test_the_oldest_first_up_to_a_limit() -> None:
    letters(3)
    assert replay("--limit", "2")[-2:] == [
        "3 open letters match; the oldest 2 of them are meant.",
        "2 reprocessed, 0 skipped.",
    ]
    assert states() == ["reprocessed", "reprocessed", "open"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--kind", "ticket.triage"], 2),
        (["--code", "AI_PROVIDER_ERROR", "--since", "1h"], 2),
        (["--code", "AI_NOTHING"], 0),
        (["--fingerprint", "f" * 40], 2),
        (["--since", "2999-01-01"], 0),
        (["--until", "2020-01-01"], 0),
    ],
)
def test_filters(arguments: list[str], expected: int) -> None:
    letters(2)
    told = replay(*arguments)
    assert told[-1] == (f"{expected} reprocessed, 0 skipped." if expected else "There is nothing to do.")
    assert states().count("reprocessed") == expected


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--since", "soon"], "--since: “soon” is no time"),
        (["--kind", "nobody"], "There is no kind “nobody”."),
        (["--limit", "0"], "--limit is 0; it must be 1 or more."),
        (["--fingerprint", "f" * 65], "--fingerprint: "),
        (["--code", "a\x00b"], "--code: "),
        (["--code", "a\udcff"], "--code: this is not UTF-8 text."),
    ],
)
def test_what_cannot_be_read_replays_nothing(arguments: list[str], sentence: str) -> None:
    letters(1)
    with pytest.raises(CommandError, match=sentence.replace(".", r"\.")):
        replay(*arguments)
    assert states() == ["open"]


@pytest.mark.django_db
def test_nothing_matches() -> None:
    deaths.kind()
    assert replay() == ["0 open letters match.", "There is nothing to do."]


@pytest.mark.django_db
def test_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each letter once, whatever the size of the batch."""
    monkeypatch.setattr("deadletters.replay.run.BATCH", 2)
    letters(5)
    assert replay()[-1] == "5 reprocessed, 0 skipped."


@pytest.mark.django_db
def test_a_task_that_dies_again_meanwhile_is_not_sent_again() -> None:
    """Else a replay of what still fails would never end."""
    letters(3)
    run = Replay(DeadLetter.objects.open(), {}).run(user=people.operator(), reason="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deadletters.replay.run.BATCH", 2)
        assert next(run) == 2
        deaths.run(count=2)
        assert list(run) == [3]
    assert DeadLetter.objects.filter(state="open", cycle=2).count() == 2


@pytest.mark.django_db
def test_an_interrupted_replay_tells_how_far_it_got() -> None:
    letters(3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deadletters.replay.run.BATCH", 1)
        run = Replay(DeadLetter.objects.open(), {}).run(user=people.operator(), reason="")
        next(run)
        run.close()  # type: ignore[attr-defined]
    assert OperatorAction.objects.get(action="replay_letters").outcome == "interrupted: 1 reprocessed, 0 skipped"
    assert states() == ["reprocessed", "open", "open"]


@pytest.mark.django_db(transaction=True)
def test_two_replays_at_once_share_the_letters() -> None:
    """Every letter is sent again by exactly one of them."""
    letters(12)
    operator = people.operator()
    start = threading.Barrier(2)

    def go() -> None:
        try:
            start.wait()
            list(Replay(DeadLetter.objects.open(), {}).run(user=operator, reason=""))
        finally:
            connection.close()

    threads = [threading.Thread(target=go) for _number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states() == ["reprocessed"] * 12
    assert set(Task.objects.values_list("cycle", flat=True)) == {2}
    ends = OperatorAction.objects.filter(action="replay_letters").values_list("count", flat=True)
    assert sum(ends) == 12


@pytest.mark.django_db
def test_a_letter_that_somebody_else_reprocessed_first_is_counted_as_skipped() -> None:
    (letter,) = letters(1)
    replaying = Replay(DeadLetter.objects.filter(pk=letter.pk), {})
    lifecycle.reprocess([letter.task_id], actor="ana")
    assert list(replaying.run(user=people.operator(), reason="")) == [0]
    assert dict(replaying.skipped) == {"Its task is not dead any more.": 1}
