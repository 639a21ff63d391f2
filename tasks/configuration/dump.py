"""The configuration of the database as the text of a file that ``load`` takes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from django.db import models

from tasks.catalogue_rows import builtin_fields
from tasks.configuration.keys import TABLES, Table
from tasks.configuration.toml import toml_table
from tasks.configuration.values import same
from tasks.errors.codes import CODES
from tasks.models import ErrorCode


def dump() -> str:
    """All providers, kinds, rules and those error codes that differ from the built-in ones, as TOML.

    Keys that have their default are left out. Loading the text again changes nothing.
    """
    return "\n".join(
        toml_table(table.name, values)
        for table in TABLES.values()
        for row in table.model._default_manager.all()
        if (values := _values(table, row))
    )


def _values(table: Table, row: models.Model) -> dict[str, Any]:
    """The keys to write; none for a built-in code as it is built in."""
    if isinstance(row, ErrorCode) and row.code in CODES:
        said = _changed(row)
        return {"code": row.code, **dict(_written(table, row, said))} if said else {}
    keys = [key for key in table.keys if key == table.identity or not _has_default(table, row, key)]
    return dict(_written(table, row, keys))


def _changed(row: ErrorCode) -> list[str]:
    builtin = builtin_fields(CODES[row.code])
    return [name for name, value in builtin.items() if name in row.changed_fields or getattr(row, name) != value]


def _has_default(table: Table, row: models.Model, key: str) -> bool:
    field = table.field(key)
    return same(field, getattr(row, field.attname), field.get_default())


def _written(table: Table, row: models.Model, keys: Collection[str]) -> Iterator[tuple[str, Any]]:
    for key in keys:
        field = table.field(key)
        value = getattr(row, field.attname)
        if value is None:  # of a built-in code, changed to nothing
            yield key, table.nothing
            continue
        yield key, json.dumps(value, indent=2, ensure_ascii=False) if isinstance(field, models.JSONField) else value
