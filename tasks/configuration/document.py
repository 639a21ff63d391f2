"""The file as rows of known tables with known keys; everything else is a problem."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from tasks.configuration.keys import TABLES, Table
from tasks.configuration.lines import Lines, find_lines
from tasks.configuration.problems import ConfigurationError, Problem

#: Characters of a name that a sentence repeats.
SHOWN_CHARACTERS = 60
_ENDLESS = re.compile(r"[0-9][0-9_]{4000}")


@dataclass
class Entry:
    """One row of the file. ``given`` are its values as TOML has them; ``problems`` collects what is wrong with it."""

    table: Table
    number: int
    given: Mapping[str, Any]
    lines: Lines = field(default_factory=Lines)
    problems: list[Problem] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name that the file gives the row, or an empty string."""
        name = self.given.get(self.table.identity)
        # One with NUL cannot even be asked for; that it is refused is said where its value is read.
        return name if isinstance(name, str) and "\x00" not in name else ""

    def __str__(self) -> str:
        name = self.name if len(self.name) <= SHOWN_CHARACTERS and self.name.isprintable() else shown_name(self.name)
        return f"{self.table.title} {name or f'number {self.number}'}"

    def report(self, message: str, key: str = "") -> None:
        """Note a problem at ``key``, or with the row as a whole."""
        line = self.lines.keys.get(key) or self.lines.header or None
        self.problems.append(Problem(message, str(self), key, line))


@dataclass
class Document:
    """The rows by table name, in the order of the file. A table that the file does not mention is missing."""

    rows: dict[str, list[Entry]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def of(self, table: Table) -> list[Entry]:
        """The rows of a table; none where the file does not mention it."""
        return self.rows.get(table.name, [])

    def all_problems(self) -> list[Problem]:
        """Everything found so far."""
        return [*self.problems, *(problem for rows in self.rows.values() for row in rows for problem in row.problems)]


def read_document(text: str) -> Document:
    """The rows of a configuration file. Raises ConfigurationError where the text is no TOML; the rest is collected."""
    text = text.removeprefix("\ufeff")
    tables = _parsed(text)
    lines = find_lines(text)
    document = Document()
    for name, value in tables.items():
        _read_table(document, name, value, lines)
    for rows in document.rows.values():
        _refuse_twins(rows)
    return document


def shown_name(name: Any) -> str:
    """A name in quotes, as a sentence can bear it: cut, and control characters escaped."""
    text = str(name)
    return repr(text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…")


def unknown(word: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that does not exist, with the names that are near it."""
    known = list(known)
    near = get_close_matches(name[:SHOWN_CHARACTERS], known, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return f"there is no {word} {shown_name(name)}; {hint}"


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError([Problem(f"this is no TOML: {error}")]) from error
    except RecursionError as error:
        raise ConfigurationError([Problem("this is no TOML that can be read: it is nested too deeply")]) from error
    except ValueError as error:  # Python reads no number of more than some thousand digits
        line = next((number for number, line in enumerate(text.split("\n"), 1) if _ENDLESS.search(line)), None)
        problem = "this is no TOML that can be read: a number has more digits than any number here may have"
        raise ConfigurationError([Problem(problem, line=line)]) from error


def _read_table(document: Document, name: str, value: Any, lines: dict[str, list[Lines]]) -> None:
    places = lines.get(name, [])
    line = places[0].header if places else lines[""][0].keys.get(name)
    if name not in TABLES:
        document.problems.append(Problem(unknown("table", name, TABLES), line=line))
    elif not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        document.problems.append(Problem(f"{name} must be written as [[{name}]], once for each", line=line))
    else:
        found = places if len(places) == len(value) else [Lines(line or 0) for _ in value]
        table = TABLES[name]
        document.rows[name] = [Entry(table, at, row, found[at - 1]) for at, row in enumerate(value, 1)]
        for entry in document.rows[name]:
            for key in entry.given.keys() - set(table.keys):
                entry.report(unknown("key", key, table.keys), key)


def _refuse_twins(rows: list[Entry]) -> None:
    first: dict[str, Entry] = {}
    for row in rows:
        twin = first.setdefault(row.name.lower(), row)
        if not row.name or twin is row:
            continue
        if twin.name == row.name:
            message = f"the name {shown_name(row.name)} is used before, at number {twin.number}"
        else:
            message = alike(row.name, f"{shown_name(twin.name)}, at number {twin.number}")
        row.report(message, row.table.identity)


def alike(name: str, other: str) -> str:
    """The sentence for two names that people would take for one."""
    return f"the name {shown_name(name)} differs only in capital letters from {other}"
