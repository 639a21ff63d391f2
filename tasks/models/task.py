"""One requested piece of work, and its append-only history of moves."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from tasks.models.ids import uuid7
from tasks.models.kind import Kind, Lane
from tasks.models.ranges import HIGHEST_PRIORITY, LOWEST_PRIORITY
from tasks.querysets import TaskQuerySet
from tasks.states import FINAL, Status

#: In one order, as migrations compare them.
FINAL_STATUSES = tuple(sorted(FINAL))
DUE_STATUSES = (Status.SCHEDULED, Status.RETRYABLE)


class Task(models.Model):
    """A kind, a payload, a status. ``status`` is written by ``tasks.lifecycle`` alone."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.ForeignKey(Kind, on_delete=models.PROTECT, related_name="tasks", db_index=False)
    lane = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="tasks", db_index=False)
    payload = models.JSONField(_("payload"))
    result = models.JSONField(_("result"), null=True)
    status = models.CharField(_("status"), max_length=16, choices=[(s.value, s.value) for s in Status])
    reason = models.CharField(_("reason of death"), max_length=32, blank=True)
    error_code = models.CharField(_("error code"), max_length=64, blank=True)
    subject = models.CharField(_("subject"), max_length=200, blank=True)

    cycle = models.PositiveIntegerField(_("cycle"), default=1)
    failures = models.PositiveIntegerField(
        _("counted failures"), default=0, help_text=_("Counted attempts of this cycle that failed.")
    )
    snoozes = models.PositiveIntegerField(_("snoozes in a row"), default=0)
    rescues = models.PositiveIntegerField(
        _("rescues"), default=0, help_text=_("Processes that died under it in this cycle, seen by their sentinel.")
    )
    asks = models.PositiveSmallIntegerField(
        _("times asked"),
        default=0,
        db_default=0,
        help_text=_("How often its handler was asked what became of the work, since it is unknown."),
    )
    # Not indexed: few tasks are unknown at a time, and ``task_unknown`` finds them.
    ask_after = models.DateTimeField(
        _("asked next"), null=True, help_text=_("Of an unknown task: when; while it is asked: the end of its window.")
    )
    cycle_started_at = models.DateTimeField(_("first claim of this cycle"), null=True)
    priority = models.SmallIntegerField(_("priority"), default=0)
    run_after = models.DateTimeField(_("not before"), db_default=Now())
    expires_at = models.DateTimeField(_("expires"), null=True)

    # Without constraints, as those of an attempt.
    worker = models.ForeignKey(
        "WorkerProcess", on_delete=models.PROTECT, null=True, related_name="tasks", db_index=False, db_constraint=False
    )
    attempt = models.ForeignKey(
        "Attempt", on_delete=models.PROTECT, null=True, related_name="+", db_index=False, db_constraint=False
    )
    cancel_requested_at = models.DateTimeField(_("cancel asked for"), null=True)
    parked_at = models.DateTimeField(_("set aside"), null=True)
    progress = models.JSONField(_("progress"), null=True)

    session_id = models.CharField(_("session"), max_length=200, blank=True)
    user_id = models.CharField(_("user"), max_length=200, blank=True)
    trace_id = models.CharField(_("trace"), max_length=200, blank=True)
    tags: ArrayField[list[str], list[str]] = ArrayField(
        models.CharField(max_length=100), default=list, blank=True, verbose_name=_("tags")
    )
    idempotency_key = models.CharField(_("idempotency key"), max_length=200, blank=True)
    webhook_url = models.URLField(_("webhook"), max_length=2000, blank=True)

    event_seq = models.PositiveIntegerField(_("events so far"), default=0)
    input_tokens = models.PositiveBigIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveBigIntegerField(_("output tokens"), default=0)
    cost = models.DecimalField(_("cost, USD"), max_digits=14, decimal_places=8, default=0)
    created_at = models.DateTimeField(_("submitted"), db_default=Now())
    status_at = models.DateTimeField(_("in this status since"), db_default=Now())
    finished_at = models.DateTimeField(_("ended"), null=True)

    objects = TaskQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        verbose_name = _("task")
        verbose_name_plural = _("tasks")
        constraints = (
            models.CheckConstraint(name="task_status_known", condition=Q(status__in=[s.value for s in Status])),
            models.CheckConstraint(
                name="task_running_has_worker_and_attempt",
                condition=Q(status=Status.RUNNING, worker__isnull=False, attempt__isnull=False)
                | (~Q(status=Status.RUNNING) & Q(worker__isnull=True, attempt__isnull=True)),
            ),
            models.CheckConstraint(
                name="task_final_has_finished_at",
                condition=Q(status__in=FINAL_STATUSES, finished_at__isnull=False)
                | (~Q(status__in=FINAL_STATUSES) & Q(finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="task_dead_has_reason",
                condition=(Q(status=Status.DEAD) & ~Q(reason="")) | (~Q(status=Status.DEAD) & Q(reason="")),
            ),
            models.CheckConstraint(
                name="task_result_only_when_succeeded", condition=Q(status=Status.SUCCEEDED) | Q(result__isnull=True)
            ),
            models.CheckConstraint(
                name="task_priority_range", condition=Q(priority__range=(LOWEST_PRIORITY, HIGHEST_PRIORITY))
            ),
            models.CheckConstraint(name="task_cycle_positive", condition=Q(cycle__gte=1)),
            models.UniqueConstraint(
                fields=("kind", "idempotency_key"),
                condition=~Q(idempotency_key=""),
                name="task_idempotency_key_once",
            ),
        )
        indexes = (
            models.Index(
                F("lane"),
                F("priority").desc(),
                F("run_after"),
                F("id"),
                name="task_ready",
                condition=Q(status=Status.READY, parked_at__isnull=True),
            ),
            # The few that two processes died under: the claim asks for them apart.
            models.Index(
                fields=["lane"],
                name="task_suspect",
                condition=Q(status=Status.READY, parked_at__isnull=True, rescues__gte=2),
            ),
            models.Index(fields=["run_after"], name="task_due", condition=Q(status__in=DUE_STATUSES)),
            models.Index(fields=["worker"], name="task_running", condition=Q(status=Status.RUNNING)),
            models.Index(fields=["id"], name="task_unknown", condition=Q(status=Status.UNKNOWN)),
            models.Index(
                fields=["expires_at"],
                name="task_expires",
                condition=Q(expires_at__isnull=False) & ~Q(status__in=[*FINAL_STATUSES, Status.RUNNING]),
            ),
            models.Index(fields=["status", "-id"], name="task_by_status"),
            models.Index(fields=["kind", "-id"], name="task_by_kind"),
            models.Index(fields=["session_id", "-id"], name="task_by_session", condition=~Q(session_id="")),
            models.Index(fields=["user_id", "-id"], name="task_by_user", condition=~Q(user_id="")),
            models.Index(fields=["trace_id"], name="task_by_trace", condition=~Q(trace_id="")),
            models.Index(fields=["error_code", "-id"], name="task_by_code", condition=~Q(error_code="")),
            # Partial, and a filter by tag says so, too: what has no tag costs it nothing.
            GinIndex(fields=["tags"], name="task_by_tag", condition=~Q(tags=[])),
        )

    def __str__(self) -> str:
        return f"{self.kind_id} {self.pk}"


class TaskEvent(models.Model):
    """One move of a task, or one thing that happened to it. Append-only; ``seq`` has no gap within a task."""

    id = models.BigAutoField(primary_key=True)
    # Without a constraint, as that of an attempt.
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="events", db_index=False, db_constraint=False)
    seq = models.PositiveIntegerField(_("number"))
    at = models.DateTimeField(_("when"), db_default=Now())
    type = models.CharField(_("what"), max_length=32)
    from_status = models.CharField(_("from"), max_length=16, blank=True)
    to_status = models.CharField(_("to"), max_length=16, blank=True)
    cycle = models.PositiveIntegerField(_("cycle"))
    attempt = models.ForeignKey(
        "Attempt", on_delete=models.SET_NULL, null=True, related_name="+", db_index=False, db_constraint=False
    )
    actor = models.CharField(_("who"), max_length=150, blank=True)
    data = models.JSONField(_("details"), default=dict)

    class Meta:
        ordering = ("task", "seq")
        verbose_name = _("task event")
        verbose_name_plural = _("task events")
        constraints = (
            models.UniqueConstraint(fields=("task", "seq"), name="task_event_seq_once"),
            models.UniqueConstraint(
                fields=("task",), condition=Q(to_status=Status.SUCCEEDED), name="task_success_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"
