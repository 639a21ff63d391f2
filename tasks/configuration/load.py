"""Write a configuration file to the database: all of it or, where anything is wrong, nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.db import connection, models, transaction

from tasks.catalogue_rows import builtin_fields
from tasks.configuration.checks import check_code, check_kind, check_rule
from tasks.configuration.document import Document, alike, read_document
from tasks.configuration.keys import CODE, KIND, PROVIDER, RULE, Table
from tasks.configuration.problems import ConfigurationError
from tasks.configuration.report import Change, Report
from tasks.configuration.rows import Default, Row, lay_over
from tasks.errors.codes import CODES
from tasks.models import ErrorCode, ErrorRule, Kind, Provider


def load(text: str) -> Report:
    """Bring providers, kinds, error codes and rules of the database to what the TOML ``text`` says.

    A row that the file names takes the file's values, and the default for each key that it leaves out: the model's, for
    a built-in error code the built-in one. That the kind's number holds instead of a built-in code's is said by
    ``"kind"`` in the number's place. Rows that the file does not name stay as they are; only rules have no names, so a
    file with any (or with ``rule = []``) replaces all rules that operators wrote. Loading the same file again changes
    nothing. Pauses, holds and unfinished tasks are kept.

    Raises ConfigurationError with all problems; then nothing was written.
    """
    document = read_document(text)
    with transaction.atomic():
        _one_at_a_time()
        providers, codes, kinds, rules = _plan(document)
        if problems := document.all_problems():
            raise ConfigurationError(problems)
        report = Report()
        for row in (*providers, *codes):
            _save(row)
            report.add(row)
        for row in kinds:
            report.add(row, _save_kind(row))
        if RULE.name in document.rows:
            report.changes.append(_replace_rules([row.instance for row in rules]))
    return report


def _one_at_a_time() -> None:
    """Two loads at once would each see the other's names as missing; the second waits for the first."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('redrive.configuration'))")


def _plan(document: Document) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
    # Whoever locks kinds and providers locks the kinds first, so that nobody waits for the other.
    kinds = _rows(document, KIND)
    providers = _rows(document, PROVIDER)
    codes = _rows(document, CODE, default_of=_code_default)
    rules = [lay_over(entry, {}) for entry in document.of(RULE)]
    provider_names = _names(Provider, providers)
    code_names = _names(ErrorCode, codes)
    _names(Kind, kinds)
    for row in codes:
        check_code(row)
    for row in kinds:
        check_kind(row, provider_names)
    for row in rules:
        check_rule(row, code_names)
    return providers, codes, kinds, rules


def _rows(
    document: Document, table: Table, default_of: Callable[[str], Default | None] = lambda name: None
) -> list[Row]:
    """The rows of a table, the existing ones locked, so that a pause or hold that comes meanwhile is not undone."""
    entries = document.of(table)
    names = [entry.name for entry in entries]
    # in the order of their names, so that two writers never wait for each other
    locked = table.model._default_manager.select_for_update(no_key=True).filter(pk__in=names).order_by("pk")
    existing: dict[str, models.Model] = {str(row.pk): row for row in locked}
    return [lay_over(entry, existing, default_of(entry.name)) for entry in entries]


def _names(model: type[models.Model], rows: Iterable[Row]) -> set[str]:
    """All names that there will be; a new one that differs from another's only in capital letters is reported."""
    present = set(model._default_manager.values_list("pk", flat=True))
    lowered = {name.lower(): name for name in present}
    for row in rows:
        name = row.entry.name
        if name not in present and (other := lowered.get(name.lower())):
            row.entry.report(alike(name, f"{other}, which exists"), row.entry.table.identity)
    return {*present, *(row.entry.name for row in rows)}


def _code_default(name: str) -> Default | None:
    """A built-in code falls back to its built-in values, not to the empty ones of a new row."""
    spec = CODES.get(name)
    return {"code": name, **builtin_fields(spec)}.get if spec else None


def _save(row: Row) -> None:
    instance = row.instance
    fields = list(row.changed)
    if isinstance(instance, ErrorCode) and instance.code in CODES:
        # What the file says holds over what a later release brings.
        said = sorted(row.entry.given.keys() - {"code"})
        if said != sorted(instance.changed_fields):
            instance.changed_fields = said
            fields.append("changed_fields")
        instance.builtin = True
    if isinstance(instance, Provider) and "base_url" in row.changed and instance.simulated:
        # The demo's mark belongs to the demo's address.
        instance.simulated = False
        fields.append("simulated")
    if row.is_new:
        instance.save(force_insert=True)
    elif fields:
        instance.save(update_fields=[*fields, *_stamp(instance)])


def _stamp(instance: models.Model) -> list[str]:
    return ["updated_at"] if isinstance(instance, Kind | Provider) else []


def _save_kind(row: Row) -> int | None:
    """Save a kind; the number of the prompt version that this made, if any."""
    kind: Kind = row.instance
    before = kind.prompt_version_id
    _save(row)
    made = kind.prompt_version_id != before and kind.prompt_version is not None
    return kind.prompt_version.number if made and kind.prompt_version else None


def _replace_rules(wanted: list[ErrorRule]) -> Change:
    """Make the operators' rules the file's, in its order. A rule that is there already keeps its row."""
    present = list(ErrorRule.objects.select_for_update().order_by("position", "id"))
    if [_content(rule) for rule in present] == [_content(rule) for rule in wanted]:
        return Change("rules", "unchanged")
    spare = list(present)
    for position, rule in enumerate(wanted, 1):
        rule.position = position
        twin = next((other for other in spare if _content(other) == _content(rule)), None)
        if twin:
            spare.remove(twin)
            rule.pk = twin.pk
        rule.save()
    ErrorRule.objects.filter(pk__in=[rule.pk for rule in spare]).delete()
    return Change("rules", f"{len(wanted)} in place of {len(present)}")


def _content(rule: ErrorRule) -> tuple[Any, ...]:
    return tuple(getattr(rule, RULE.field(key).attname) for key in RULE.keys)
