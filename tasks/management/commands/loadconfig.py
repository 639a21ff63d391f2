"""Bring the configuration to what a TOML file says."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DataError, IntegrityError, OperationalError, transaction

from tasks import audit
from tasks.configuration.load import load
from tasks.configuration.problems import ConfigurationError
from tasks.configuration.report import Report
from tasks.management.account import Account

MAX_BYTES = 4 * 1024 * 1024


class Command(BaseCommand):
    """``loadconfig FILE.toml``: all of the file or, where anything in it is wrong, nothing."""

    help = (
        "Load providers, kinds, error codes and rules from a TOML file. Loading it twice is the same as once. Keys that"
        " the file leaves out take their default, for a built-in error code the built-in value; the word 'kind' in the"
        " place of such a code's number lets the kind decide. Rows that the file does not name stay. A file with"
        " [[rule]] replaces all rules that operators wrote, in its order."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The file."""
        parser.add_argument("file", metavar="FILE.toml", help="the file, or - for the standard input")

    def handle(self, *args: Any, **options: Any) -> None:
        """Load, and say what became of each row. Exits with 1, and all problems with their lines, on a bad file."""
        name = options["file"]
        text = read_text(name)
        try:
            with transaction.atomic():
                report = load(text)
                _audit(name, report)
        except ConfigurationError as error:
            count = len(error.problems)
            raise CommandError(
                f"{name} was not loaded; {count} problem{'s' * (count > 1)}:\n"
                + "\n".join(f"  {problem}" for problem in error.problems)
            ) from error
        except (DataError, IntegrityError) as error:
            # What was checked a moment ago was changed by somebody else.
            refusal = str(error).strip().splitlines()[0]
            raise CommandError(f"{name} was not loaded; the database refused it: {refusal}") from error
        except OperationalError as error:
            raise CommandError(f"{name} was not loaded: {str(error).strip()}") from error
        for line in (*report.changes, *report.notes):
            self.stdout.write(str(line))
        if not report.changes:
            self.stdout.write(f"{name} names nothing to load.")


def read_text(name: str) -> str:
    """The text of the file, or of the standard input for ``-``. Raises CommandError where it cannot be read."""
    try:
        data = _read_bytes(name)
        return data.decode("utf-8")
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CommandError(
            f"{name} is no UTF-8 text (line {line}, byte {error.start}); TOML files are UTF-8."
        ) from error


def _read_bytes(name: str) -> bytes:
    """Never more than a configuration may have: a pipe or a device may have no end."""
    if name == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        with Path(name).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise CommandError(f"{name} was not loaded: it is larger than {MAX_BYTES} bytes, more than any configuration.")
    return data


def _audit(name: str, report: Report) -> None:
    """A load is an action of a person: one row says what it changed."""
    changed = [str(change) for change in report.changes if change.outcome != "unchanged"]
    if changed:
        audit.record(
            Account.of("loadconfig"),
            "load_configuration",
            target_type="configuration",
            target_id=name,
            count=len(changed),
            data={"changes": changed},
        )
