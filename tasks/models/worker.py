"""The processes that run tasks, and how long their cluster has had the database."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class WorkerProcess(models.Model):
    """One identity of one process. A process that lost its lease takes a new row; no row comes back."""

    id = models.BigAutoField(primary_key=True)
    role = models.CharField(_("role"), max_length=16, choices=[("worker", "worker"), ("caretaker", "caretaker")])
    cluster = models.CharField(_("cluster"), max_length=200)
    host = models.CharField(_("host"), max_length=255)
    pid = models.PositiveIntegerField(_("process id"))
    slots = models.PositiveIntegerField(_("slots"), default=0)
    running = models.PositiveIntegerField(_("tasks under way"), default=0)
    handlers: ArrayField[list[str], list[str]] = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    reconcilers: ArrayField[list[str], list[str]] = ArrayField(
        models.CharField(max_length=200),
        default=list,
        db_default=[],
        blank=True,
        help_text=_("The handlers among them that can tell what became of a vanished attempt."),
    )
    started_at = models.DateTimeField(_("started"), db_default=Now())
    # Not indexed on purpose: it changes every beat, and an unindexed column keeps those updates cheap (HOT).
    lease_until = models.DateTimeField(_("lease until"))
    stopped_at = models.DateTimeField(_("stopped"), null=True)
    lost_at = models.DateTimeField(_("lost"), null=True)
    exit_seen_at = models.DateTimeField(
        _("death seen"), null=True, help_text=_("When its living sentinel saw the process end by itself.")
    )
    exit_code = models.IntegerField(_("exit code"), null=True)
    late_saves_refused = models.PositiveIntegerField(_("late saves refused"), default=0)

    class Meta:
        ordering = ("-id",)
        verbose_name = _("worker process")
        verbose_name_plural = _("worker processes")
        indexes = (
            models.Index(fields=["id"], name="worker_live", condition=Q(lost_at__isnull=True, stopped_at__isnull=True)),
            models.Index(fields=["cluster", "pid"], name="worker_by_pid"),
        )

    def __str__(self) -> str:
        return f"{self.role} {self.pk} ({self.host}:{self.pid})"


class ClusterContact(models.Model):
    """Since when a cluster has had the database without a break. Nobody is rescued before that is one lease."""

    name = models.CharField(_("cluster"), primary_key=True, max_length=200)
    contact_since = models.DateTimeField(_("in contact since"), db_default=Now())
    contact_at = models.DateTimeField(_("last contact"), db_default=Now())

    class Meta:
        verbose_name = _("cluster contact")
        verbose_name_plural = _("cluster contacts")

    def __str__(self) -> str:
        return self.name
