"""Submit tasks from the command line."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from stat import S_ISREG
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, connection
from tqdm import tqdm

from tasks.configuration.document import unknown
from tasks.models import Kind
from tasks.states import Status
from tasks.submission.batches import batches, submit_batch
from tasks.submission.follow import Follower, someone_runs
from tasks.submission.interrupts import Interrupted, interrupt_afterwards, interruptible
from tasks.submission.lines import Line, read_lines
from tasks.submission.payloads import BadLine, Payload, parse_payload

BAD_LINE = 2
NOT_ALL_WELL = 1
LOOK_SECONDS = 0.5
#: How long tasks may wait before the person is told that nobody runs them.
UNATTENDED_SECONDS = 5.0


class IdsUnwritten(Exception):
    """Tasks are committed whose ids could not be told; the text is a sentence that says why."""


class Command(BaseCommand):
    """``submit KIND [--input FILE.jsonl|-] [--payload JSON] [--wait]``."""

    help = (
        "Submit tasks: one, or one for each line of a file. Ids go to the standard output, one a line; all else to the"
        " standard error. Exit codes: 2, a line was bad (the others are submitted); 1, with --wait, a task died or is"
        " held back, or the ids cannot be written; 130 or 143, interrupted (what was submitted stays)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The kind and where the payloads come from."""
        parser.add_argument("kind", metavar="KIND")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--input", metavar="FILE.jsonl", help="one payload a line, any JSON value; - for stdin")
        source.add_argument("--payload", metavar="JSON", help="the payload of one task")
        parser.add_argument("--wait", action="store_true", help="until each task has ended or is held back")

    def handle(self, *args: Any, **options: Any) -> None:
        """Submit and, if asked to, wait. Ends with SystemExit for an exit code other than 0."""
        self.kind: str = options["kind"]
        self.bad_lines = 0
        self.count = 0
        #: Kept only to wait for them; there may be millions.
        self.ids: list[UUID] = []
        self.keep = bool(options["wait"])
        try:
            with interruptible():
                _refuse_without_stdout()
                _check_kind(self.kind)
                self._submit(options)
                code = self._wait() if self.keep else 0
        except Interrupted as error:
            last = " Whether its last batch was submitted, the task list tells." if error.in_a_batch else ""
            _say(f"Interrupted. {self._submitted()}; they go on.{last}")
            sys.exit(error.exit_code)
        except IdsUnwritten as error:
            _silence_stdout()
            _say(f"{error} {self._submitted()}; the rest of the input was not read.")
            sys.exit(NOT_ALL_WELL)
        if self.bad_lines:
            code = BAD_LINE
        if code:
            sys.exit(code)

    def _submit(self, options: dict[str, Any]) -> None:
        if options["payload"] is not None:
            self._submit_one(options["payload"])
            return
        with _opened(options["input"]) as descriptor, _submit_bar(descriptor) as bar:
            for portion in self._portions(options["input"], descriptor):
                for batch in batches(portion, self._complain):
                    self._submit_batch(batch)
                _advance(bar, descriptor, self.count)
        bad = "1 line was bad" if self.bad_lines == 1 else f"{self.bad_lines:,} lines were bad"
        _say(f"{self._submitted()}{f'; {bad}' if self.bad_lines else ''}.")

    def _submit_one(self, text: str) -> None:
        try:
            self._submit_batch([Payload(0, parse_payload(text))])
        except BadLine as error:
            self._complain(0, str(error))

    def _submit_batch(self, batch: list[Payload]) -> None:
        with interrupt_afterwards():
            try:
                ids = submit_batch(self.kind, batch, self._complain)
            except (OperationalError, InterfaceError) as error:
                raise CommandError(
                    f"The database was lost at lines {batch[0].number} to {batch[-1].number}; whether these were"
                    f" submitted, the task list tells. Before them: {self._submitted().lower()}. ({error})"
                ) from error
            self.count += len(ids)
            self.ids += ids if self.keep else []
            if ids:
                self._tell(ids)

    def _tell(self, ids: list[UUID]) -> None:
        try:
            self.stdout.write("\n".join(map(str, ids)))
            self.stdout.flush()
        except BrokenPipeError as error:
            raise IdsUnwritten("Nobody reads the ids any more.") from error
        except OSError as error:
            raise IdsUnwritten(f"The ids cannot be written: {error.strerror}.") from error

    def _portions(self, name: str, descriptor: int) -> Iterator[list[Line]]:
        """The lines that there are. Raises CommandError where they cannot be read."""
        try:
            yield from read_lines(descriptor)
        except OSError as error:
            raise _unreadable(name, error, f" {self._submitted()} before that." if self.count else "") from error

    def _complain(self, number: int, message: str) -> None:
        self.bad_lines += 1
        _say(f"line {number}: {message}" if number else f"--payload: {message}")

    def _submitted(self) -> str:
        return f"Submitted {self.count:,} task{'s' * (self.count != 1)} of {self.kind}"

    def _wait(self) -> int:
        follower = Follower(self.ids)
        self.ids = []
        watch = _Watch(self.kind)
        with _bar(total=follower.total, unit=" tasks", desc="ended") as bar:
            while True:
                watch.look(follower)
                bar.update(follower.ended.total() - bar.n)
                if follower.over:
                    break
                time.sleep(LOOK_SECONDS)
        _say(f"{follower.summary()}.{_where_to_look(follower)}")
        return NOT_ALL_WELL if follower.failed else 0


class _Watch:
    """Looks at the tasks, through restarts of the database, and says once what keeps them waiting."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._began = time.monotonic()
        self._told: set[str] = set()

    def look(self, follower: Follower) -> None:
        """Look once."""
        try:
            follower.look()
            self._mention_nobody(follower)
        except (OperationalError, InterfaceError) as error:
            connection.close()
            self._tell(f"The database does not answer; waiting for it. ({error})")

    def _mention_nobody(self, follower: Follower) -> None:
        waited = time.monotonic() - self._began
        message = f"No worker runs {self._kind} at the moment; the tasks wait. Start one with manage.py qcluster."
        if waited > UNATTENDED_SECONDS and message not in self._told and not follower.over:
            if not someone_runs(self._kind):
                self._tell(message)
            self._began = time.monotonic()

    def _tell(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            _say(message)


def _check_kind(name: str) -> None:
    try:
        known = list(Kind.objects.order_by("name").values_list("name", flat=True))
    except OperationalError as error:
        raise CommandError(f"Nothing was submitted: {str(error).strip()}") from error
    if name not in known:
        raise CommandError(f"{unknown('kind', name, known).capitalize()}.", returncode=BAD_LINE)


def _where_to_look(follower: Follower) -> str:
    """The pages that say more of what went wrong."""
    pages = ["/dead-letters/"] if follower.ended[Status.DEAD] else []
    pages += ["/kinds/"] if follower.held else []
    return f" See {' and '.join(pages)}." if pages else ""


def _say(message: str) -> None:
    """A line on the standard error, above a progress bar that is there; nowhere, where that cannot be written."""
    if sys.stderr is not None:
        with suppress(OSError):
            tqdm.write(message, file=sys.stderr)


def _refuse_without_stdout() -> None:
    if sys.stdout is None:
        raise CommandError(
            "Nothing was submitted: the standard output is closed, and the ids go there. Send it to /dev/null where "
            "nobody needs them."
        )


def _silence_stdout() -> None:
    """Nothing more can be written there; without this Python would complain when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _opened(name: str) -> Iterator[int]:
    """The descriptor of the file or, for ``-``, of the standard input. Raises CommandError where there is none."""
    if name == "-" and sys.stdin is None:
        raise CommandError("The standard input is closed; give a file with --input, or a pipe.", returncode=BAD_LINE)
    try:
        descriptor = sys.stdin.fileno() if name == "-" else os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(name, error) from error
    try:
        yield descriptor
    finally:
        if name != "-":
            os.close(descriptor)


def _unreadable(name: str, error: OSError, more: str = "") -> CommandError:
    return CommandError(f"{name} cannot be read: {error.strerror or error}.{more}", returncode=BAD_LINE)


def _bar(**options: Any) -> tqdm[None]:
    """A progress bar on the standard error; none where that is no terminal, as messages would run into it."""
    return tqdm(file=sys.stderr, disable=None if sys.stderr is not None else True, **options)


def _submit_bar(descriptor: int) -> tqdm[None]:
    """Over the bytes of a file; a pipe has no end to measure by, so its tasks are counted."""
    status = os.fstat(descriptor)
    if S_ISREG(status.st_mode):
        return _bar(total=status.st_size, unit="B", unit_scale=True, desc="submitted")
    return _bar(unit=" tasks", desc="submitted")


def _advance(bar: tqdm[None], descriptor: int, count: int) -> None:
    if bar.total is None:
        bar.update(count - bar.n)
        return
    bar.set_postfix_str(f"{count:,} tasks", refresh=False)
    bar.update(os.lseek(descriptor, 0, os.SEEK_CUR) - bar.n)
