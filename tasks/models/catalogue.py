"""The error-code catalogue as rows, so that operators can change it. The built-in rows come from ``tasks.errors``."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from tasks.models.one_line import ONE_LINE
from tasks.models.ranges import LONGEST_WAIT, MOST_ATTEMPTS, Within, once_in_any_case, range_checks
from tasks.states import Cause, Level

CODE_RANGES = {
    "max_attempts": Within(1, MOST_ATTEMPTS),
    "initial_interval_seconds": Within(0.1, LONGEST_WAIT),
    "backoff_coefficient": Within(1.0, 100.0),
    "maximum_interval_seconds": Within(0.1, LONGEST_WAIT),
}
RULE_RANGES = {"position": Within(-1_000_000, 1_000_000)}


class ErrorCode(models.Model):
    """A row of the catalogue: how far it spreads, whose fault it is, what is retried, what to tell whom."""

    code = models.CharField(_("code"), primary_key=True, max_length=64)
    builtin = models.BooleanField(_("built in"), default=False, editable=False)
    changed_fields: ArrayField[list[str], list[str]] = ArrayField(
        models.CharField(max_length=64),
        default=list,
        blank=True,
        editable=False,
        help_text=_("Fields that an operator changed: an upgrade leaves them alone."),
    )
    title = models.CharField(_("title"), max_length=200, blank=True, validators=[ONE_LINE])
    level = models.CharField(
        _("level"),
        max_length=2,
        choices=[(v.value, v.value) for v in Level],
        default=Level.L1,
        help_text=_("L1: this request. L2: the session. L3: the whole system."),
    )
    cause = models.CharField(
        _("cause"), max_length=16, choices=[(v.value, v.value) for v in Cause], default=Cause.INTEGRATION
    )
    retryable = models.BooleanField(
        _("retryable"), default=False, help_text=_("Off: the task dies at once, whatever its budget.")
    )
    uses_budget = models.BooleanField(
        _("uses budget"), default=True, help_text=_("Off: it waits without using an attempt, as for a rate limit.")
    )
    cools_provider = models.BooleanField(
        _("cools the provider"),
        default=False,
        help_text=_("A time that the provider names rests the whole provider, not this task alone."),
    )
    holds_provider = models.BooleanField(
        _("holds the provider"), default=False, help_text=_("Nothing is sent there until a person releases it.")
    )
    max_attempts = models.PositiveSmallIntegerField(
        _("attempts in a cycle"),
        null=True,
        blank=True,
        validators=[CODE_RANGES["max_attempts"]],
        help_text=_("Empty: the kind decides. Else the smaller counts."),
    )
    initial_interval_seconds = models.FloatField(
        _("first wait, seconds"), null=True, blank=True, validators=[CODE_RANGES["initial_interval_seconds"]]
    )
    backoff_coefficient = models.FloatField(
        _("backoff coefficient"), null=True, blank=True, validators=[CODE_RANGES["backoff_coefficient"]]
    )
    maximum_interval_seconds = models.FloatField(
        _("longest wait, seconds"), null=True, blank=True, validators=[CODE_RANGES["maximum_interval_seconds"]]
    )
    action = models.CharField(_("default action"), max_length=64, blank=True, validators=[ONE_LINE])
    user_message = models.TextField(
        _("user message"), blank=True, help_text=_("What the person who waits may read. No technical detail.")
    )
    runbook = models.TextField(_("runbook"), blank=True, help_text=_("What an operator checks and does."))
    next_step = models.CharField(_("next step"), max_length=300, blank=True, validators=[ONE_LINE])

    class Meta:
        ordering = ("code",)
        verbose_name = _("error code")
        verbose_name_plural = _("error codes")
        constraints = (
            once_in_any_case("code", "code"),
            *range_checks("code", CODE_RANGES),
            models.CheckConstraint(
                name="code_intervals_ordered",
                condition=Q(maximum_interval_seconds__gte=F("initial_interval_seconds")),
            ),
        )

    def __str__(self) -> str:
        return self.code


class ErrorRule(models.Model):
    """When a failure has this code. All conditions given must hold; patterns are RE2, found anywhere in the text."""

    position = models.IntegerField(
        _("position"),
        default=0,
        validators=[RULE_RANGES["position"]],
        help_text=_("Lower comes first, before the built-in rules."),
    )
    code = models.ForeignKey(ErrorCode, on_delete=models.CASCADE, related_name="rules", verbose_name=_("code"))
    enabled = models.BooleanField(_("enabled"), default=True)
    exception = models.CharField(
        _("exception"), max_length=300, blank=True, help_text=_("Pattern over the class name.")
    )
    cause = models.CharField(_("cause chain"), max_length=300, blank=True, help_text=_("Pattern over each cause."))
    http_status = models.CharField(
        _("HTTP status"), max_length=100, blank=True, help_text=_("One or more, with commas: 429,503")
    )
    message = models.CharField(_("message"), max_length=500, blank=True, help_text=_("Pattern over the message."))
    body = models.CharField(_("body"), max_length=500, blank=True, help_text=_("Pattern over the body as text."))
    provider = models.CharField(
        _("provider"), max_length=100, blank=True, validators=[ONE_LINE], help_text=_("Exact name.")
    )
    kind = models.CharField(_("kind"), max_length=100, blank=True, validators=[ONE_LINE], help_text=_("Exact name."))
    note = models.CharField(_("note"), max_length=300, blank=True, validators=[ONE_LINE])

    class Meta:
        ordering = ("position", "id")
        verbose_name = _("error rule")
        verbose_name_plural = _("error rules")
        constraints = tuple(range_checks("rule", RULE_RANGES))

    def __str__(self) -> str:
        return f"{self.position} → {self.code_id}"

    def clean(self) -> None:
        """Refuse a rule that has no condition; patterns are checked where rules are compiled."""
        if not any((self.exception, self.cause, self.http_status, self.message, self.body, self.provider, self.kind)):
            raise ValidationError(_("A rule needs at least one condition; this one would match every failure."))
