"""The range of each number of the configuration: one validator for the admin and ``loadconfig``, one CHECK for it.

Without an upper end a setting of 1e300 would be taken and overflow at night, in a clock or in a date of the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils.deconstruct import deconstructible
from django.utils.translation import gettext_lazy as _

DAY = 86_400.0
#: The longest wait between two attempts, the longest timeout and the longest deadline of a cycle, in seconds.
LONGEST_WAIT, LONGEST_TIMEOUT, LONGEST_DEADLINE = 30 * DAY, DAY, 365 * DAY
MOST_ATTEMPTS = 1000
LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100
#: Digits from which on a number is told by how many it has.
SHOWN_DIGITS = 20


@deconstructible
class Within(MinValueValidator, MaxValueValidator):
    """From ``low`` to ``high``, both included; NaN is outside.

    Of both sorts, so that Django sees an end on either side and adds no second sentence about the column's own.
    """

    message = _("It is %(shown)s; it must be from %(low)s to %(high)s.")
    code = "range"

    def __init__(self, low: float, high: float) -> None:
        super().__init__(high)
        self.low, self.high = low, high

    def __call__(self, value: Any) -> None:
        """Raise ValidationError where the value is outside."""
        if not self.low <= value <= self.high:
            shown = {"shown": shown_number(value), "low": shown_number(self.low), "high": shown_number(self.high)}
            raise ValidationError(self.message, code=self.code, params=shown)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Within) and (self.low, self.high) == (other.low, other.high)

    def __hash__(self) -> int:
        return hash((self.low, self.high))


def shown_number(value: float) -> str:
    """A number as people write it: 86400 for 86400.0, and of a number of thousands of digits how many there are."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    # Not by its text: Python refuses to write numbers of more than some thousand digits.
    digits = abs(value).bit_length() * 30_103 // 100_000 + 1
    return str(value) if digits <= SHOWN_DIGITS else f"a number of about {digits} digits"


def range_checks(prefix: str, ranges: Mapping[str, Within]) -> Iterable[models.CheckConstraint]:
    """The database's own check of each range; an empty value is none of its business."""
    return [
        models.CheckConstraint(
            name=f"{prefix}_{field}_range", condition=Q(**{f"{field}__range": (each.low, each.high)})
        )
        for field, each in ranges.items()
    ]


def once_in_any_case(prefix: str, field: str) -> models.UniqueConstraint:
    """No two rows whose names differ only in capital letters: people would take one for the other."""
    return models.UniqueConstraint(
        Lower(field),
        name=f"{prefix}_{field}_once_in_any_case",
        violation_error_message=_("There is one already whose name differs only in capital letters."),
    )


#: What a column of a cost holds (numeric(14,8)), in USD.
LARGEST_COST = Decimal("999999.99999999")
