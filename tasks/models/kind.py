"""What sort of work there is, the versions of its prompt, and the lanes its tasks wait in."""

from __future__ import annotations

import json
from typing import Any

from django.core.validators import RegexValidator
from django.db import models, transaction
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from tasks.models.one_line import ONE_LINE
from tasks.models.provider import Provider
from tasks.models.ranges import (
    HIGHEST_PRIORITY,
    LONGEST_DEADLINE,
    LONGEST_TIMEOUT,
    LONGEST_WAIT,
    LOWEST_PRIORITY,
    MOST_ATTEMPTS,
    Within,
    once_in_any_case,
    range_checks,
)
from tasks.states import FINAL, Status

KIND_NAME = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9_.\-]*\Z", _("Letters, digits, dot, hyphen and underscore only."))
#: The fields whose change makes a new prompt version.
VERSIONED = ("model", "system_prompt", "prompt", "output_schema")
RANGES = {
    "temperature": Within(0.0, 2.0),
    "max_output_tokens": Within(1, 10_000_000),
    "max_repairs": Within(0, 10),
    "max_attempts": Within(1, MOST_ATTEMPTS),
    "initial_interval_seconds": Within(0.1, LONGEST_WAIT),
    "backoff_coefficient": Within(1.0, 100.0),
    "maximum_interval_seconds": Within(0.1, LONGEST_WAIT),
    "jitter": Within(0.0, 1.0),
    "timeout_seconds": Within(0.1, LONGEST_TIMEOUT),
    "stall_seconds": Within(0.1, LONGEST_TIMEOUT),
    "deadline_seconds": Within(1.0, LONGEST_DEADLINE),
    "priority": Within(LOWEST_PRIORITY, HIGHEST_PRIORITY),
    "concurrency_limit": Within(1, 1_000_000),
}
UNFINISHED = tuple(status for status in Status if status not in FINAL)


class Kind(models.Model):
    """One sort of work: a prompt, or a handler in code, with its retry policy and limits."""

    name = models.CharField(_("name"), primary_key=True, max_length=100, validators=[KIND_NAME])
    handler = models.CharField(
        _("handler"),
        max_length=200,
        blank=True,
        validators=[ONE_LINE],
        help_text=_("Name of a registered handler in code. Empty: a prompt kind, run by the fields below."),
    )
    provider = models.ForeignKey(
        Provider, on_delete=models.PROTECT, null=True, blank=True, related_name="kinds", verbose_name=_("provider")
    )
    model = models.CharField(
        _("model"), max_length=200, blank=True, validators=[ONE_LINE], help_text=_("The provider's name of the model.")
    )
    backup_provider = models.ForeignKey(
        Provider,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="backed_up_kinds",
        verbose_name=_("backup provider"),
        help_text=_("Stored; not yet used."),
    )
    backup_model = models.CharField(
        _("backup model"), max_length=200, blank=True, validators=[ONE_LINE], help_text=_("Stored; not yet used.")
    )
    system_prompt = models.TextField(
        _("system prompt"), blank=True, help_text=_("A Django template over the payload; sent first. May be empty.")
    )
    prompt = models.TextField(
        _("prompt"), blank=True, help_text=_("A Django template over the payload: {{ text }} puts in the field “text”.")
    )
    output_schema = models.JSONField(
        _("schema of the answer"),
        null=True,
        blank=True,
        help_text=_("A JSON Schema. With it the answer must be JSON that fits; without it the answer is text."),
    )
    stream = models.BooleanField(
        _("stream"), default=True, help_text=_("Token by token: gives progress. Off costs less processor time.")
    )
    temperature = models.FloatField(_("temperature"), null=True, blank=True, validators=[RANGES["temperature"]])
    max_output_tokens = models.PositiveIntegerField(
        _("most output tokens"), null=True, blank=True, validators=[RANGES["max_output_tokens"]]
    )
    max_repairs = models.PositiveSmallIntegerField(
        _("most repairs"),
        default=2,
        validators=[RANGES["max_repairs"]],
        help_text=_("How often an answer against the schema is sent back within one attempt."),
    )
    max_attempts = models.PositiveSmallIntegerField(
        _("attempts in a cycle"), default=3, validators=[RANGES["max_attempts"]]
    )
    initial_interval_seconds = models.FloatField(
        _("first wait, seconds"), default=1.0, validators=[RANGES["initial_interval_seconds"]]
    )
    backoff_coefficient = models.FloatField(
        _("backoff coefficient"), default=2.0, validators=[RANGES["backoff_coefficient"]]
    )
    maximum_interval_seconds = models.FloatField(
        _("longest wait, seconds"), default=30.0, validators=[RANGES["maximum_interval_seconds"]]
    )
    jitter = models.FloatField(
        _("jitter"),
        default=0.5,
        validators=[RANGES["jitter"]],
        help_text=_("0: exact waits. 0.5: each wait is shortened at random by up to a half."),
    )
    timeout_seconds = models.FloatField(
        _("timeout of an attempt, seconds"), default=120.0, validators=[RANGES["timeout_seconds"]]
    )
    stall_seconds = models.FloatField(
        _("stall, seconds"),
        null=True,
        blank=True,
        validators=[RANGES["stall_seconds"]],
        help_text=_(
            "Longest silence of a running attempt: no token, no progress told. Empty: only the timeout counts."
        ),
    )
    deadline_seconds = models.FloatField(
        _("deadline, seconds"),
        default=86_400.0,
        validators=[RANGES["deadline_seconds"]],
        help_text=_("Counted from the first claim of the cycle: a retry that would start later dies instead."),
    )
    priority = models.SmallIntegerField(_("priority"), default=0, validators=[RANGES["priority"]])
    concurrency_limit = models.PositiveIntegerField(
        _("tasks at once"),
        null=True,
        blank=True,
        validators=[RANGES["concurrency_limit"]],
        help_text=_("Tasks of this kind under way at once, over all workers. Empty: no limit."),
    )
    safe_to_rerun = models.BooleanField(
        _("safe to rerun"),
        null=True,
        blank=True,
        help_text=_("May a task whose worker vanished simply run again? Unknown: yes for prompts, no for handlers."),
    )
    subject = models.CharField(
        _("subject"),
        max_length=200,
        blank=True,
        validators=[ONE_LINE],
        help_text=_("Path of the payload field shown in lists, for example ticket.subject"),
    )
    fallback_result = models.JSONField(
        _("fallback result"), null=True, blank=True, help_text=_("Stored; not yet used.")
    )
    paused_at = models.DateTimeField(_("paused since"), null=True, blank=True, editable=False)
    paused_by = models.CharField(_("paused by"), max_length=150, blank=True, editable=False)
    pause_reason = models.TextField(_("reason of the pause"), blank=True, editable=False)
    # RESTRICT, not PROTECT: a kind without tasks can be deleted, and its versions with it.
    prompt_version = models.ForeignKey(
        "PromptVersion", on_delete=models.RESTRICT, null=True, blank=True, related_name="+", editable=False
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        ordering = ("name",)
        verbose_name = _("kind")
        verbose_name_plural = _("kinds")
        constraints = (
            once_in_any_case("kind", "name"),
            *range_checks("kind", RANGES),
            models.CheckConstraint(
                name="kind_prompt_has_provider", condition=~Q(handler="") | (Q(provider__isnull=False) & ~Q(model=""))
            ),
            models.CheckConstraint(
                name="kind_intervals_ordered",
                condition=Q(maximum_interval_seconds__gte=F("initial_interval_seconds")),
            ),
        )

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save, and in the same transaction make the prompt version and the lane that new tasks need.

        Tasks that wait in a lane which the kind leaves follow within seconds, batch by batch (``lifecycle.realign``):
        there may be a million of them, and no lock of theirs may be taken while the kind's is held.
        """
        with transaction.atomic():
            super().save(*args, **kwargs)
            self._keep_version()
            self.lane()

    @property
    def is_prompt(self) -> bool:
        """Whether the kind is run by its prompt rather than by a handler in code."""
        return not self.handler

    @property
    def reruns_safely(self) -> bool:
        """Whether a task whose worker vanished may simply run again."""
        return self.is_prompt if self.safe_to_rerun is None else self.safe_to_rerun

    def lane(self) -> Lane:
        """The lane that new tasks of this kind wait in."""
        return Lane.objects.get_or_create(kind=self, provider=self.provider)[0]

    def _keep_version(self) -> None:
        current = self.prompt_version if self.is_prompt else None
        wanted = {field: getattr(self, field) for field in VERSIONED}
        if self.is_prompt and not (current and _canonical(current.as_sent()) == _canonical(wanted)):
            last = self.versions.order_by("-number").first()
            current = self.versions.create(number=last.number + 1 if last else 1, **wanted)
        if current != self.prompt_version:
            self.prompt_version = current
            super().save(update_fields=["prompt_version"])


def _canonical(values: dict[str, Any]) -> str:
    """Text that differs where the values do; in Python True equals 1, in JSON it does not."""
    return json.dumps(values, sort_keys=True)


class PromptVersion(models.Model):
    """What an attempt was told to send: never changed once made (a trigger refuses it)."""

    kind = models.ForeignKey(Kind, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(_("number"))
    model = models.CharField(_("model"), max_length=200)
    system_prompt = models.TextField(_("system prompt"), blank=True)
    prompt = models.TextField(_("prompt"), blank=True)
    output_schema = models.JSONField(_("schema of the answer"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        ordering = ("kind", "-number")
        verbose_name = _("prompt version")
        verbose_name_plural = _("prompt versions")
        constraints = (models.UniqueConstraint(fields=("kind", "number"), name="prompt_version_number_once"),)

    def __str__(self) -> str:
        return f"{self.kind_id} v{self.number}"

    def as_sent(self) -> dict[str, Any]:
        """The fields that make it a version of its own."""
        return {field: getattr(self, field) for field in VERSIONED}


class Lane(models.Model):
    """One queue: a kind on its effective provider. The claim visits open lanes only."""

    kind = models.ForeignKey(Kind, on_delete=models.CASCADE, related_name="lanes")
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, null=True, related_name="lanes")

    class Meta:
        verbose_name = _("lane")
        verbose_name_plural = _("lanes")
        constraints = (models.UniqueConstraint(fields=("kind", "provider"), name="lane_once", nulls_distinct=False),)

    def __str__(self) -> str:
        return f"{self.kind_id} on {self.provider_id or '-'}"
