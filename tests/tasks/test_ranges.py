"""Every number of the configuration has two ends, and the admin, ``loadconfig`` and the database hold them alike."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, models, transaction

from tasks.configuration.keys import TABLES
from tasks.configuration.load import load
from tasks.configuration.problems import ConfigurationError
from tasks.models import ErrorCode, ErrorRule, Kind, Provider
from tasks.models.catalogue import CODE_RANGES, RULE_RANGES
from tasks.models.kind import RANGES as KIND_RANGES
from tasks.models.provider import RANGES as PROVIDER_RANGES
from tasks.models.ranges import Within, shown_number
from tests.factories import make_kind
from tests.tasks.test_admin import change, client_of

pytestmark = pytest.mark.django_db
RANGES: dict[type[models.Model], dict[str, Within]] = {
    Kind: KIND_RANGES,
    Provider: PROVIDER_RANGES,
    ErrorCode: CODE_RANGES,
    ErrorRule: RULE_RANGES,
}
EVERY = [(model, field, each) for model, ranges in RANGES.items() for field, each in ranges.items()]
IN_A_FILE = [(model, field, each) for model, field, each in EVERY if model is not ErrorRule]


def rows(model: type[models.Model]) -> Any:
    """One row of the model, as a queryset."""
    make_kind()
    if model is ErrorRule:
        ErrorRule.objects.create(code_id="AI_OVERLOADED", message="full")
    return model._default_manager.filter(pk=model._default_manager.all()[0].pk)


def outside(model: type[models.Model], field: str, each: Within) -> list[float]:
    """Numbers that the field must not take."""
    whole = isinstance(model._meta.get_field(field), models.IntegerField)
    if field == "maximum_interval_seconds":  # below its low end it is shorter than the first wait, which is said
        return [each.high + 0.01, 1e18, 1e300]
    return [each.low - 1, each.high + 1, 10**18] if whole else [each.low - 0.01, each.high + 0.01, 1e18, 1e300]


def test_no_number_that_a_file_may_set_is_without_ends() -> None:
    numbers = models.IntegerField | models.FloatField
    unbounded = [
        f"{table.name}.{key}"
        for table in TABLES.values()
        for key in table.keys
        if isinstance(field := table.field(key), numbers) and not any(isinstance(v, Within) for v in field.validators)
    ]
    assert unbounded == []


@pytest.mark.parametrize(("model", "field", "each"), EVERY)
def test_the_admin_refuses_what_is_outside(model: type[models.Model], field: str, each: Within) -> None:
    carl, obj = client_of("carl", "configure"), rows(model).get()
    ends = f"it must be from {shown_number(each.low)} to {shown_number(each.high)}."
    for value in outside(model, field, each):
        complaints = change(carl, obj, **{field: value})
        assert f"It is {shown_number(value)}; {ends}" in complaints
        assert len([each for each in complaints if "shorter than the first" not in each]) == 1


@pytest.mark.parametrize(("model", "field", "each"), IN_A_FILE)
def test_loadconfig_refuses_what_is_outside(model: type[models.Model], field: str, each: Within) -> None:
    table = next(table for table in TABLES.values() if table.model is model)
    ends = f"it must be from {shown_number(each.low)} to {shown_number(each.high)}."
    for value in outside(model, field, each):
        with pytest.raises(ConfigurationError) as caught:
            load(f'[[{table.name}]]\n{table.identity} = "AI_OVERLOADED"\n{field} = {value!r}\n')
        told = [str(problem) for problem in caught.value.problems if problem.line == 3]
        assert f"line 3: {table.title} AI_OVERLOADED: {field}: It is {shown_number(value)}; {ends}" in told


@pytest.mark.parametrize(("model", "field", "each"), EVERY)
def test_the_database_refuses_what_is_outside(model: type[models.Model], field: str, each: Within) -> None:
    row = rows(model)
    whole = isinstance(model._meta.get_field(field), models.IntegerField)
    for value in [*outside(model, field, each), *([] if whole else [float("nan"), float("inf")])]:
        # A number beyond the column's own is out of range before the check is asked.
        with pytest.raises((IntegrityError, DataError), match=rf"{field}_range|out of range"), transaction.atomic():
            row.update(**{field: value})


@pytest.mark.parametrize(("model", "field", "each"), EVERY)
def test_both_ends_are_inside(model: type[models.Model], field: str, each: Within) -> None:
    row = rows(model)
    waits = {"initial_interval_seconds": each.low, "maximum_interval_seconds": each.high}
    for value in (each.low, each.high):
        row.update(**{**(waits if field in waits else {}), field: value, **_partner(field, value)})
        each(value)


def _partner(field: str, value: float) -> dict[str, float]:
    """The other wait, which may not be on the wrong side."""
    other = {
        "initial_interval_seconds": "maximum_interval_seconds",
        "maximum_interval_seconds": "initial_interval_seconds",
    }
    return {other[field]: value} if field in other else {}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (-7, "-7"),
        (86_400.0, "86400"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (10**18, "1000000000000000000"),
        (10**5000, "a number of about 5001 digits"),
    ],
    ids=["zero", "negative", "whole", "part", "huge", "18 digits", "5001 digits"],
)
def test_a_number_is_shown_as_people_write_it(value: float, shown: str) -> None:
    assert shown_number(value) == shown


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, 10**5000], ids=["nan", "inf", "-1", "long"])
def test_no_number_slips_between_the_ends(value: float) -> None:
    with pytest.raises(ValidationError, match="it must be from 0 to 10"):
        Within(0, 10)(value)


@pytest.mark.parametrize(
    ("model", "name", "other"),
    [
        (Provider, "acme", {"name": "ACME", "base_url": "http://a/v1"}),
        (Kind, "ticket.triage", {"name": "Ticket.Triage", "handler": "h"}),
        (ErrorCode, "AI_OVERLOADED", {"code": "ai_overloaded"}),
    ],
)
def test_names_that_differ_in_capital_letters_only_are_one_name(
    model: type[models.Model], name: str, other: dict[str, str]
) -> None:
    make_kind()
    table = next(table for table in TABLES.values() if table.model is model)
    with pytest.raises(IntegrityError, match="once_in_any_case"), transaction.atomic():
        model(**other).save(force_insert=True)
    with pytest.raises(ValidationError, match="differs only in capital letters"):
        model(**other).validate_constraints()
    with pytest.raises(ConfigurationError, match=f"differs only in capital letters from {name}, which exists"):
        load(f"[[{table.name}]]\n" + "".join(f'{key} = "{value}"\n' for key, value in other.items()))
