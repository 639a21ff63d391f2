"""A row of the file laid over the row of the database, with the checks that each field carries itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from tasks.configuration.document import Entry, shown_name
from tasks.configuration.values import read_value, same

Default = Callable[[str], Any]


@dataclass
class Row:
    """What the database will hold: ``instance`` with the file's values set, and which keys that changes."""

    entry: Entry
    instance: Any
    is_new: bool
    changed: tuple[str, ...]

    def value(self, key: str) -> Any:
        """The value that a key has now; of a reference, the name."""
        return getattr(self.instance, self.entry.table.field(key).attname)


def lay_over(entry: Entry, existing: Mapping[str, models.Model], default: Default | None = None) -> Row:
    """Set every key of the table on the existing or a new row: the file's value, else the default.

    ``default`` gives the value of a key that the file leaves out; without it, the model's. What is wrong is reported
    on the entry.
    """
    found = existing.get(entry.name)
    instance = found or entry.table.model()
    changed = []
    for key in entry.table.keys:
        field = entry.table.field(key)
        value = _wanted(entry, key, default)
        if not same(field, getattr(instance, field.attname), value):
            changed.append(key)
        setattr(instance, field.attname, value)
    _check_fields(entry, instance)
    return Row(entry, instance, found is None, tuple(changed))


def _wanted(entry: Entry, key: str, default: Default | None) -> Any:
    field = entry.table.field(key)
    fallback = default(key) if default else field.get_default()
    if key not in entry.given:
        return fallback
    nothing = entry.table.nothing_for(key)
    if nothing and entry.given[key] == nothing:
        return None
    try:
        return read_value(field, entry.given[key])
    except ValueError as error:
        entry.report(f'{error}, or "{nothing}": the {nothing} decides' if nothing else str(error), key)
        return fallback


def _check_fields(entry: Entry, instance: models.Model) -> None:
    told = {problem.key for problem in entry.problems}
    for key in entry.table.keys:
        field = entry.table.field(key)
        value = getattr(instance, field.attname)
        if key in told:
            continue
        if value in (None, "") and not field.blank:
            entry.report("is missing" if key not in entry.given else "must not be empty", key)
        elif not isinstance(field, models.ForeignKey):  # whether the row it names exists is asked later
            for message in _complaints(field, value, instance):
                entry.report(message, key)


def _complaints(field: models.Field[Any, Any], value: Any, instance: models.Model) -> list[str]:
    if value in field.empty_values and field.blank:
        return []
    try:
        field.clean(value, instance)
    except ValidationError as error:
        if field.choices:
            allowed = ", ".join(str(choice) for choice, _ in field.flatchoices)
            return [f"is {shown_name(value)}; it must be one of {allowed}"]
        # texts are not repeated: a key that was pasted into the wrong place would end up in a log
        return list(error.messages)
    return []
