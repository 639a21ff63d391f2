"""Attempts (one row a claim) and the trail of their model calls."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from tasks.models.kind import PromptVersion
from tasks.models.provider import Provider
from tasks.models.task import Task
from tasks.states import COUNTED, Outcome


class Attempt(models.Model):
    """One row per claim of a task. Its id is never reused and is the fence of every late write."""

    id = models.BigAutoField(primary_key=True)
    # Without a constraint, as of the pointers below: a task that still has attempts or events cannot be deleted (a
    # trigger sees to it), and the claim writes the attempt in the statement that moves the task.
    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="attempts", db_index=False, db_constraint=False
    )
    cycle = models.PositiveIntegerField(_("cycle"))
    outcome = models.CharField(
        _("outcome"), max_length=16, choices=[(o.value, o.value) for o in Outcome], default=Outcome.RUNNING
    )
    counted = models.GeneratedField(
        expression=models.Case(
            models.When(outcome__in=sorted(COUNTED), then=models.Value(True)), default=models.Value(False)
        ),
        output_field=models.BooleanField(),
        db_persist=True,
    )
    # Without constraints: the claim has read these rows in the same statement, none of them is ever deleted while an
    # attempt names it (PROTECT), and a check of each for each attempt is a tenth of what an empty task costs.
    worker = models.ForeignKey(
        "WorkerProcess",
        on_delete=models.PROTECT,
        null=True,
        related_name="attempts",
        db_index=False,
        db_constraint=False,
    )
    prompt_version = models.ForeignKey(
        PromptVersion,
        on_delete=models.PROTECT,
        null=True,
        related_name="attempts",
        db_index=False,
        db_constraint=False,
    )
    provider = models.ForeignKey(
        Provider, on_delete=models.PROTECT, null=True, related_name="attempts", db_index=False, db_constraint=False
    )
    started_at = models.DateTimeField(_("started"), db_default=Now())
    finished_at = models.DateTimeField(_("ended"), null=True)
    error_code = models.CharField(_("error code"), max_length=64, blank=True)
    fingerprint = models.CharField(_("fingerprint"), max_length=64, blank=True)
    last_error = models.TextField(_("error"), blank=True)
    failure = models.JSONField(
        _("failure"), null=True, help_text=_("Class, cause chain, HTTP status, headers, body, traceback; masked.")
    )
    decision = models.JSONField(
        _("decision"), null=True, help_text=_("What followed: action, delay in seconds, reason, the provider's hint.")
    )
    repairs = models.PositiveSmallIntegerField(_("repairs"), default=0)
    mended = models.JSONField(_("mended locally"), default=list)
    input_tokens = models.PositiveIntegerField(_("input tokens"), null=True)
    output_tokens = models.PositiveIntegerField(_("output tokens"), null=True)
    cost = models.DecimalField(_("cost, USD"), max_digits=14, decimal_places=8, null=True)

    class Meta:
        ordering = ("id",)
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints = (
            models.CheckConstraint(name="attempt_outcome_known", condition=Q(outcome__in=[o.value for o in Outcome])),
            models.CheckConstraint(
                name="attempt_running_until_finished",
                condition=Q(outcome=Outcome.RUNNING, finished_at__isnull=True)
                | (~Q(outcome=Outcome.RUNNING) & Q(finished_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="attempt_failure_has_code", condition=~Q(outcome=Outcome.FAILED) | ~Q(error_code="")
            ),
        )
        # None that knows the outcome: its change, once in an attempt's life, then leaves the indexes alone.
        indexes = (models.Index(fields=["task", "id"], name="attempt_by_task"),)

    def __str__(self) -> str:
        return f"attempt {self.pk}"


class ModelCall(models.Model):
    """The trail: one HTTP call to a model within an attempt. Prompts and answers are kept as they were."""

    id = models.BigAutoField(primary_key=True)
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="calls", db_index=False)
    seq = models.PositiveSmallIntegerField(_("number"))
    provider_name = models.CharField(_("provider"), max_length=100)
    model = models.CharField(_("model"), max_length=200)
    messages = models.JSONField(_("messages"), default=list)
    answer = models.TextField(_("answer"), blank=True)
    tool_calls = models.JSONField(_("tool calls"), default=list)
    finish_reason = models.CharField(_("finish reason"), max_length=64, blank=True)
    input_tokens = models.PositiveIntegerField(_("input tokens"), null=True)
    output_tokens = models.PositiveIntegerField(_("output tokens"), null=True)
    cost = models.DecimalField(_("cost, USD"), max_digits=14, decimal_places=8, null=True)
    provider_request_id = models.CharField(_("provider's request id"), max_length=200, blank=True)
    http_status = models.PositiveSmallIntegerField(_("HTTP status"), null=True)
    error = models.CharField(_("error"), max_length=200, blank=True)
    mended = models.JSONField(_("mended locally"), default=list)
    started_at = models.DateTimeField(_("started"))
    duration_ms = models.PositiveIntegerField(_("duration, ms"))

    class Meta:
        ordering = ("attempt", "seq")
        verbose_name = _("model call")
        verbose_name_plural = _("model calls")
        constraints = (models.UniqueConstraint(fields=("attempt", "seq"), name="model_call_seq_once"),)

    def __str__(self) -> str:
        return f"call {self.seq} of attempt {self.attempt_id}"
