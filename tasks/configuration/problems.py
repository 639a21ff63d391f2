"""What is wrong with a configuration file, and where. All of it is told at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: Characters of a key that a sentence repeats; ours are shorter.
LONGEST_KEY = 60


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: a sentence, the row of which table, the key, the ``line`` (None where it has none)."""

    message: str
    where: str = ""
    key: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = [f"line {self.line}"] if self.line else []
        key = self.key if len(self.key) <= LONGEST_KEY and self.key.isprintable() else repr(self.key[:LONGEST_KEY])
        return ": ".join((*place, *filter(None, (self.where, key)), self.message))


class ConfigurationError(ValueError):
    """A file that cannot be used; ``problems`` are all that were found, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line or 0))
        super().__init__("\n".join(str(problem) for problem in self.problems))
