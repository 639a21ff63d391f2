"""Who runs a management command, as histories and the audit name them."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from typing import Self

NAME_LENGTH = 150


@dataclass(frozen=True, slots=True)
class Account:
    """The account on this machine, and the command."""

    name: str
    command: str

    @classmethod
    def of(cls, command: str) -> Self:
        """The account that runs ``command``; a container may have none by name."""
        try:
            return cls(getpass.getuser(), command)
        except (OSError, KeyError):
            return cls("unknown account", command)

    def get_username(self) -> str:
        """Such as “deploy (loadconfig)”."""
        return f"{self.name} ({self.command})"[:NAME_LENGTH]
