"""Counts that are kept up by triggers, so that nothing ever counts the task table.

Each statement that moves tasks or ends attempts appends what it changed (``TallyDelta``), a few rows whatever the size
of its batch, and waits for nobody; the caretaker folds them into ``Tally``. A count is the sum of both.
"""

from __future__ import annotations

from django.db import models


class Tally(models.Model):
    """The folded part of one count."""

    id = models.BigAutoField(primary_key=True)
    metric = models.CharField(max_length=32)
    kind = models.CharField(max_length=200)
    label = models.CharField(max_length=100)
    value = models.FloatField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("metric", "kind", "label"), name="tally_once"),)

    def __str__(self) -> str:
        return f"{self.metric} {self.kind} {self.label}"


class TallyDelta(models.Model):
    """What one statement added to, or took from, a count."""

    id = models.BigAutoField(primary_key=True)
    metric = models.CharField(max_length=32)
    kind = models.CharField(max_length=200)
    label = models.CharField(max_length=100)
    value = models.FloatField()

    def __str__(self) -> str:
        return f"{self.metric} {self.kind} {self.label} {self.value:+g}"
