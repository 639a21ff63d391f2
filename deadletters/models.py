"""The dead letter: the record, for people, of a task that died."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from deadletters.querysets import LetterQuerySet
from tasks.models import Kind, Provider, Task
from tasks.models.ids import uuid7
from tasks.states import LetterState, Reason


class DeadLetter(models.Model):
    """One per (task, cycle). States: open → reprocessed → recovered, died_again or cancelled; open ⇄ discarded."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="letters", db_index=False)
    cycle = models.PositiveIntegerField(_("cycle"))
    kind = models.ForeignKey(Kind, on_delete=models.PROTECT, related_name="letters", db_index=False)
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, null=True, related_name="letters", db_index=False)
    state = models.CharField(
        _("state"), max_length=16, choices=[(s.value, s.value) for s in LetterState], default=LetterState.OPEN
    )
    reason = models.CharField(_("reason"), max_length=32, choices=[(r.value, r.value) for r in Reason])
    error_code = models.CharField(_("error code"), max_length=64, blank=True)
    fingerprint = models.CharField(_("fingerprint"), max_length=64, blank=True)
    title = models.CharField(_("title"), max_length=300, blank=True)
    last_error = models.TextField(_("last error"), blank=True)
    failure = models.JSONField(_("failure"), null=True)
    subject = models.CharField(_("subject"), max_length=200, blank=True)
    attempts = models.PositiveIntegerField(_("counted attempts"), default=0)
    cost = models.DecimalField(_("cost of the cycle, USD"), max_digits=14, decimal_places=8, default=0)
    session_id = models.CharField(_("session"), max_length=200, blank=True)
    user_id = models.CharField(_("user"), max_length=200, blank=True)
    trace_id = models.CharField(_("trace"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("died"), db_default=Now())
    state_at = models.DateTimeField(_("in this state since"), db_default=Now())
    handled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+", verbose_name=_("handled by")
    )
    discard_reason = models.TextField(_("reason of the discard"), blank=True)

    objects: ClassVar[LetterQuerySet] = LetterQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ("-id",)
        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")
        constraints = (
            models.UniqueConstraint(fields=("task", "cycle"), name="letter_once_per_cycle"),
            models.UniqueConstraint(
                fields=("task",),
                condition=Q(state__in=[LetterState.OPEN, LetterState.REPROCESSED, LetterState.DISCARDED]),
                name="letter_one_current_per_task",
            ),
            models.CheckConstraint(name="letter_state_known", condition=Q(state__in=[s.value for s in LetterState])),
            models.CheckConstraint(
                name="letter_discard_has_reason",
                condition=~Q(state=LetterState.DISCARDED) | ~Q(discard_reason=""),
            ),
        )
        indexes = (
            models.Index(fields=["state", "-id"], name="letter_by_state"),
            models.Index(fields=["kind", "-id"], name="letter_by_kind"),
            models.Index(fields=["error_code", "-id"], name="letter_by_code"),
            models.Index(fields=["fingerprint", "-id"], name="letter_by_fingerprint"),
            models.Index(fields=["fingerprint", "-id"], name="letter_open_alike", condition=Q(state=LetterState.OPEN)),
            models.Index(fields=["session_id", "-id"], name="letter_by_session", condition=~Q(session_id="")),
            models.Index(fields=["user_id", "-id"], name="letter_by_user", condition=~Q(user_id="")),
            models.Index(fields=["trace_id", "-id"], name="letter_by_trace", condition=~Q(trace_id="")),
        )

    def __str__(self) -> str:
        return f"letter {self.pk}"


class LetterEvent(models.Model):
    """One move of a letter: who decided what, when, and why. Append-only (a trigger refuses changes)."""

    id = models.BigAutoField(primary_key=True)
    letter = models.ForeignKey(DeadLetter, on_delete=models.CASCADE, related_name="events", db_index=False)
    at = models.DateTimeField(_("when"), db_default=Now())
    from_state = models.CharField(_("from"), max_length=16, blank=True)
    to_state = models.CharField(_("to"), max_length=16, choices=[(s.value, s.value) for s in LetterState])
    actor = models.CharField(_("who"), max_length=150, blank=True, help_text=_("Empty: the engine."))
    reason = models.TextField(_("reason"), blank=True)

    class Meta:
        ordering = ("id",)
        verbose_name = _("letter event")
        verbose_name_plural = _("letter events")
        indexes = (models.Index(fields=["letter", "id"], name="letter_event_by_letter"),)

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state}"
