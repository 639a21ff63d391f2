"""Print the configuration as TOML."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from tasks.configuration.dump import dump


class Command(BaseCommand):
    """``dumpconfig``: what ``loadconfig`` would have to be given to make this configuration."""

    help = (
        "Print providers, kinds, changed error codes and rules as TOML for loadconfig, without keys at their default."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the text to the standard output."""
        try:
            self.stdout.write(dump(), ending="")
        except OperationalError as error:
            raise CommandError(str(error).strip()) from error
