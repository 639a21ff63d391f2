"""The built-in error codes as rows: written after each migration, around whatever an operator changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.apps import apps as installed_apps
from django.apps.registry import Apps
from django.db import DEFAULT_DB_ALIAS, transaction

from tasks.errors.codes import CODES, CodeSpec


def builtin_fields(spec: CodeSpec) -> dict[str, Any]:
    """The values that a built-in code has as an ``ErrorCode`` row, by field name; the code itself is not among them."""
    return {
        "title": spec.title,
        "level": spec.level.value,
        "cause": spec.cause.value,
        "retryable": spec.retryable,
        "uses_budget": spec.uses_budget,
        "cools_provider": spec.cools_provider,
        "holds_provider": spec.holds_provider,
        "max_attempts": spec.max_attempts,
        "initial_interval_seconds": spec.initial_interval_seconds,
        "backoff_coefficient": spec.backoff_coefficient,
        "maximum_interval_seconds": spec.maximum_interval_seconds,
        "action": spec.action,
        "user_message": spec.user_message,
        "runbook": spec.runbook,
        "next_step": spec.next_step,
    }


def write_catalogue(
    sender: Any = None,
    *,
    using: str = DEFAULT_DB_ALIAS,
    apps: Apps = installed_apps,
    specs: Iterable[CodeSpec] | None = None,
    **signal: Any,
) -> None:
    """Bring the rows of the built-in codes to this release; a receiver of ``post_migrate``.

    A field named in a row's ``changed_fields`` is an operator's and stays. So does a code that an operator made before
    a release brought one of the same name: what differs from ours then counts as changed.
    """
    try:
        model = apps.get_model("tasks", "ErrorCode")
    except LookupError:  # migrated back to before the table
        return
    wanted = {spec.code: builtin_fields(spec) for spec in (CODES.values() if specs is None else specs)}
    with transaction.atomic(using=using):
        rows = model._default_manager.using(using).select_for_update().in_bulk(wanted)
        stale = [row for code, row in rows.items() if _renew(row, wanted[code])]
        model._default_manager.using(using).bulk_update(
            stale, ["builtin", "changed_fields", *builtin_fields(next(iter(CODES.values())))]
        )
        model._default_manager.using(using).bulk_create(
            [model(code=code, builtin=True, **fields) for code, fields in wanted.items() if code not in rows],
            ignore_conflicts=True,  # two migrations at once write the same rows
        )


def _renew(row: Any, wanted: dict[str, Any]) -> bool:
    """Set the fields that are ours; whether that changed the row."""
    differing = [name for name, value in wanted.items() if getattr(row, name) != value]
    if not row.builtin:
        row.builtin, row.changed_fields = True, differing
        return True
    ours = [name for name in differing if name not in row.changed_fields]
    for name in ours:
        setattr(row, name, wanted[name])
    return bool(ours)
