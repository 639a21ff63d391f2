"""What a load did, for people."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.configuration.keys import NOT_YET_ENFORCED
from tasks.configuration.rows import Row


@dataclass(frozen=True)
class Change:
    """One row: ``outcome`` is created, changed or unchanged; ``version`` the number of the prompt version it made."""

    what: str
    outcome: str
    keys: tuple[str, ...] = ()
    version: int | None = None

    def __str__(self) -> str:
        keys = f" ({', '.join(self.keys)})" if self.keys else ""
        version = f"; prompt version {self.version}" if self.version else ""
        return f"{self.what}: {self.outcome}{keys}{version}"


@dataclass
class Report:
    """All rows of the file in the order in which they were saved, and what the reader should know besides."""

    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything in the database is different now."""
        return any(change.outcome != "unchanged" for change in self.changes)

    def add(self, row: Row, version: int | None = None) -> None:
        """Note one saved row."""
        outcome = "created" if row.is_new else "changed" if row.changed or version else "unchanged"
        self.changes.append(Change(str(row.entry), outcome, () if row.is_new else row.changed, version))
        idle = [key for key in NOT_YET_ENFORCED.get(row.entry.table.name, ()) if key in row.entry.given]
        if idle:
            self.notes.append(f"{row.entry}: stored, not yet enforced: {', '.join(idle)}")
