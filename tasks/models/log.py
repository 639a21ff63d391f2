"""What handlers write down while they run."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from tasks.models.attempt import Attempt


class AttemptLog(models.Model):
    """One line that a handler wrote with ``ctx.log``, without secrets. Append-only; bounded for each attempt."""

    id = models.BigAutoField(primary_key=True)
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="log", db_index=False)
    seq = models.PositiveSmallIntegerField(_("number"))
    at = models.DateTimeField(_("when"))
    text = models.TextField(_("line"))

    class Meta:
        ordering = ("attempt", "seq")
        verbose_name = _("log line")
        verbose_name_plural = _("log lines")
        constraints = (models.UniqueConstraint(fields=("attempt", "seq"), name="attempt_log_seq_once"),)

    def __str__(self) -> str:
        return f"line {self.seq} of attempt {self.attempt_id}"
