"""Reprocess the open dead letters that a filter finds."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.http import QueryDict

from deadletters.filters import LetterFilter
from deadletters.models import DeadLetter
from deadletters.replay.run import Replay
from tasks.management.account import Account
from tasks.models import Kind
from tasks.submission.interrupts import interrupt_afterwards

FILTERS = ("kind", "code", "fingerprint", "since", "until")
#: Kinds and codes that are listed one by one.
MOST_LISTED = 20


class Command(BaseCommand):
    """``replay``: each matching letter's task again, with a fresh attempt budget."""

    help = (
        "Reprocess the open dead letters that match, oldest first; all of them without a filter. --dry-run only counts."
        " Ctrl-C stops between two batches; what was sent again is told and stays so."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The filter, and what else to heed."""
        parser.add_argument("--kind", default="", help="of this kind")
        parser.add_argument("--code", default="", help="with this error code")
        parser.add_argument("--fingerprint", default="", help="with this fingerprint")
        parser.add_argument("--since", default="", help="died then or later: 15m, 24h, 7d or 2026-01-31 14:00")
        parser.add_argument("--until", default="", help="died then or earlier")
        parser.add_argument("--limit", type=int, help="no more than so many, the oldest")
        parser.add_argument("--dry-run", action="store_true", help="count what matches and change nothing")
        parser.add_argument("--reason", default="", help="why; it stands in the audit and in each letter's history")

    def handle(self, *args: Any, **options: Any) -> None:
        """Count, or send again. CommandError where the filter cannot be read."""
        replay = _replay(options)
        matched = replay.matched()
        total = sum(count for _kind, _code, count in matched)
        self._tell(matched, total, replay.limit)
        if options["dry_run"] or not total:
            self.stdout.write("Nothing was changed." if options["dry_run"] else "There is nothing to do.")
            return
        try:
            self._run(replay, options["reason"])
        except KeyboardInterrupt:
            raise CommandError(f"Interrupted. {_outcome(replay)}", returncode=130) from None
        self.stdout.write(_outcome(replay))

    def _run(self, replay: Replay, reason: str) -> None:
        steps = replay.run(user=Account.of("replay"), reason=reason)
        try:
            while True:
                with interrupt_afterwards():
                    done = next(steps, None)
                if done is None:
                    return
                self.stderr.write(f"{done} reprocessed")
        finally:
            steps.close()  # type: ignore[attr-defined]  # a generator: its end writes the audit

    def _tell(self, matched: list[tuple[str, str, int]], total: int, limit: int | None) -> None:
        for kind, code, count in matched[:MOST_LISTED]:
            self.stdout.write(f"{count:8} {kind} {code or '(no code)'}")
        if len(matched) > MOST_LISTED:
            self.stdout.write(f"{sum(row[2] for row in matched[MOST_LISTED:]):8} of {len(matched) - MOST_LISTED} more")
        limited = f"; the oldest {limit} of them are meant" if limit is not None and limit < total else ""
        self.stdout.write(f"{total} open letter{'s' * (total != 1)} match{'es' * (total == 1)}{limited}.")


def _replay(options: dict[str, Any]) -> Replay:
    params = QueryDict(mutable=True)
    params.update({name: options[name] for name in FILTERS if options[name]})
    for name, text in params.items():
        try:
            str(text).encode()  # a byte of the command line that is no UTF-8 comes as half a surrogate pair
        except UnicodeEncodeError as error:
            raise CommandError(f"--{name}: this is not UTF-8 text.") from error
    wanted = LetterFilter(params)
    for name, texts in wanted.errors.items():
        raise CommandError(f"--{name}: {' '.join(map(str, texts))}")
    if options["kind"] and not Kind.objects.filter(pk=options["kind"]).exists():
        raise CommandError(f"There is no kind “{options['kind']}”.")
    if options["limit"] is not None and options["limit"] < 1:
        raise CommandError(f"--limit is {options['limit']}; it must be 1 or more.")
    return Replay(wanted.narrow(DeadLetter.objects.all()), dict(params.items()), options["limit"])  # type: ignore[arg-type]


def _outcome(replay: Replay) -> str:
    lines = [f"{replay.reprocessed} reprocessed, {replay.skipped.total()} skipped."]
    return "\n".join([*lines, *(f"{count:8} skipped: {why}" for why, count in replay.skipped.most_common())])
