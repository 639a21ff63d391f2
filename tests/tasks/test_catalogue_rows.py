"""The built-in catalogue as rows: renewed by a release, around whatever an operator changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.core.management import call_command
from django.db import connection

from tasks.catalogue_rows import builtin_fields, write_catalogue
from tasks.errors.codes import CODES
from tasks.models import ErrorCode

pytestmark = pytest.mark.django_db

RATE_LIMIT = CODES["AI_RATE_LIMITED"]


def test_after_the_migrations_every_built_in_code_is_a_row() -> None:
    rows = {row.code: row for row in ErrorCode.objects.all()}
    assert set(rows) == set(CODES)
    assert all(row.builtin and row.changed_fields == [] for row in rows.values())
    assert (rows["AI_AUTH_FAILED"].holds_provider, rows["AI_AUTH_FAILED"].retryable) == (True, False)
    assert (rows["AI_RATE_LIMITED"].uses_budget, rows["AI_RATE_LIMITED"].cools_provider) == (False, True)


def test_every_policy_of_a_code_has_its_column() -> None:
    columns = {field.name for field in ErrorCode._meta.get_fields()} - {"rules", "builtin", "changed_fields", "code"}
    assert set(builtin_fields(RATE_LIMIT)) == columns == set(RATE_LIMIT.__dataclass_fields__) - {"code"}


def test_a_release_renews_what_nobody_changed() -> None:
    newer = replace(RATE_LIMIT, title="Newer title", max_attempts=7)
    ErrorCode.objects.filter(pk="AI_RATE_LIMITED").update(max_attempts=2, changed_fields=["max_attempts"])
    write_catalogue(specs=[newer])
    row = ErrorCode.objects.get(pk="AI_RATE_LIMITED")
    assert (row.title, row.max_attempts, row.changed_fields) == ("Newer title", 2, ["max_attempts"])


def test_a_new_code_is_added() -> None:
    write_catalogue(specs=[replace(RATE_LIMIT, code="AI_BRAND_NEW")])
    row = ErrorCode.objects.get(pk="AI_BRAND_NEW")
    assert (row.builtin, row.title) == (True, RATE_LIMIT.title)


def test_an_operators_code_that_a_release_also_brings_stays_the_operators() -> None:
    ErrorCode.objects.create(code="AI_BRAND_NEW", title="Ours", retryable=False, action="retry")
    write_catalogue(specs=[replace(RATE_LIMIT, code="AI_BRAND_NEW", action="retry")])
    row = ErrorCode.objects.get(pk="AI_BRAND_NEW")
    assert (row.title, row.retryable, row.builtin) == ("Ours", False, True)
    assert "title" in row.changed_fields
    assert "action" not in row.changed_fields


def test_writing_again_costs_a_read_and_no_write() -> None:
    statements: list[str] = []

    def note(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        statements.append(sql.split()[0])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        write_catalogue()
    assert [word for word in statements if word not in ("SAVEPOINT", "RELEASE")] == ["SELECT"]


@pytest.mark.django_db(transaction=True)
def test_migrating_back_and_forth_works() -> None:
    """The receivers meet states of the project in which their tables do not exist."""
    try:
        call_command("migrate", "tasks", "zero", verbosity=0)
    finally:
        call_command("migrate", verbosity=0)
    assert ErrorCode.objects.count() == len(CODES)
