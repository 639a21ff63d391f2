"""What the rows of a file must be together: references that lead somewhere, prompts that can be rendered."""

from __future__ import annotations

import re
from collections.abc import Collection

from tasks.configuration.document import unknown
from tasks.configuration.rows import Row
from tasks.errors.rule import Rule, RuleError
from tasks.llm.prompt import check_template

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_CONDITIONS = ("exception", "cause", "http_status", "message", "body", "provider", "kind")


def check_kind(row: Row, providers: Collection[str]) -> None:
    """A kind: its providers exist, a prompt kind has what a call needs, templates compile, waits are in order."""
    for key in ("provider", "backup_provider"):
        _check_reference(row, key, "provider", providers)
    if not row.value("handler"):
        for key in ("provider", "model", "prompt"):
            if not row.value(key) and key not in _told(row):
                row.entry.report("is missing; a kind without a handler is run by its prompt", key)
    for key in ("system_prompt", "prompt"):
        _check_template(row, key)
    _check_waits(row)


def check_code(row: Row) -> None:
    """An error code: its name is one word, its waits are in order."""
    if row.entry.name and not _CODE.match(row.entry.name):
        row.entry.report("must be letters, digits and underscores, a letter first", "code")
    _check_waits(row)


def check_rule(row: Row, codes: Collection[str]) -> None:
    """A rule: its code exists, it has a condition, its patterns compile."""
    _check_reference(row, "code", "error code", codes)
    if row.entry.problems:
        return
    rule = Rule(code=row.value("code"), **{name: row.value(name) for name in _CONDITIONS})
    try:
        rule.check()
    except RuleError as error:
        key, _, rest = str(error).partition(": ")
        row.entry.report(*((rest, key) if key in _CONDITIONS else (str(error),)))


def _told(row: Row) -> set[str]:
    return {problem.key for problem in row.entry.problems}


def _check_reference(row: Row, key: str, word: str, names: Collection[str]) -> None:
    name = row.value(key)
    if name and name not in names and key not in _told(row):
        row.entry.report(unknown(word, name, sorted(names)), key)


def _check_template(row: Row, key: str) -> None:
    try:
        check_template(row.value(key))
    except ValueError as error:
        row.entry.report(f"is no usable template: {error}", key)


def _check_waits(row: Row) -> None:
    first, longest = row.value("initial_interval_seconds"), row.value("maximum_interval_seconds")
    if first is not None and longest is not None and longest < first:
        message = f"is {longest:g}, less than initial_interval_seconds, which is {first:g}"
        row.entry.report(message, "maximum_interval_seconds")
