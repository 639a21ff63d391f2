"""What was spent of the limits that kinds and providers have, over all processes."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

#: Seconds that a rate is counted over.
WINDOW = 60


def _zeros() -> list[int]:
    return [0] * WINDOW


class Limit(models.Model):
    """One limited kind or provider. Whoever claims for it holds this row: so no two claims count the same room.

    ``requests`` and ``tokens``: what each of the last ``WINDOW`` seconds spent, the newest first; ``second``: when that
    newest second was, Unix time. ``tokens_each``: what an attempt there spends, a moving average. ``last_claimed``:
    whether a claim took the last place there, and not an attempt that had waited for one (``LimitPlace``).
    """

    class Scope(models.TextChoices):
        """What is limited."""

        KIND = "kind"
        PROVIDER = "provider"

    id = models.BigAutoField(primary_key=True)
    scope = models.CharField(max_length=16, choices=Scope)
    name = models.CharField(max_length=100)
    second = models.BigIntegerField(default=0)
    requests: ArrayField[list[int], list[int]] = ArrayField(models.IntegerField(), default=_zeros)
    tokens: ArrayField[list[int], list[int]] = ArrayField(models.BigIntegerField(), default=_zeros)
    tokens_each = models.FloatField(default=0.0)
    last_claimed = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("scope", "name"), name="limit_once"),)

    def __str__(self) -> str:
        return f"{self.scope} {self.name}"


class LimitPlace(models.Model):
    """A running attempt that has taken a place at a limited provider which is not that of its kind, or waits for one.

    ``waits_until``: None once it has it; until then, how long it counts as waiting if it does not look again.
    """

    id = models.BigAutoField(primary_key=True)
    attempt_id = models.BigIntegerField()
    provider = models.CharField(max_length=100)
    waits_until = models.DateTimeField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("attempt_id", "provider"), name="limit_place_once"),)

    def __str__(self) -> str:
        return f"{self.attempt_id} {self.provider}"


class LimitCharge(models.Model):
    """What an attempt spent at a limited provider beyond the request that its claim, or the place it took, counted.

    Appended and not added at once, as an end must not wait for a claim: the next that counts the limit adds it.
    """

    id = models.BigAutoField(primary_key=True)
    provider = models.CharField(max_length=100)
    at = models.DateTimeField(db_default=Now())
    requests = models.IntegerField()
    tokens = models.BigIntegerField()

    class Meta:
        indexes = (models.Index(fields=["provider"], name="limit_charge_by_provider"),)

    def __str__(self) -> str:
        return f"{self.provider} {self.requests} {self.tokens}"
