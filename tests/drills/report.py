"""How a drill says what it found."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from tests.drills.checker import Finding


def say(line: str) -> None:
    """Tell what a drill does as it does it."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def broken(findings: Iterable[Finding], *more: str) -> list[str]:
    """Tell all, for the log of a failed test; the promises that were broken."""
    found = list(findings)
    told(found, *more)
    return [str(finding) for finding in found if not finding.held]


def told(findings: Iterable[Finding], *more: str) -> bool:
    """Print a line for each, and what else there is to say; whether every promise was kept."""
    found = list(findings)
    sys.stdout.write("\n".join([*map(str, found), *more]) + "\n")
    return all(finding.held for finding in found)
