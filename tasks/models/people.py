"""What people did, and how they like their console."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class OperatorAction(models.Model):
    """The audit: one row per action of a person. Append-only (a trigger refuses changes)."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(_("when"), db_default=Now())
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+", verbose_name=_("user")
    )
    username = models.CharField(_("who"), max_length=150)
    action = models.CharField(_("action"), max_length=64)
    target_type = models.CharField(_("what"), max_length=32, blank=True)
    target_id = models.CharField(_("which"), max_length=200, blank=True)
    filter = models.JSONField(_("filter"), null=True, help_text=_("The exact filter of a bulk action."))
    count = models.PositiveIntegerField(_("count"), default=1)
    reason = models.TextField(_("reason"), blank=True)
    outcome = models.CharField(_("outcome"), max_length=200)
    data = models.JSONField(_("details"), default=dict)

    class Meta:
        ordering = ("-id",)
        verbose_name = _("operator action")
        verbose_name_plural = _("operator actions")
        indexes = (models.Index(fields=["target_type", "target_id", "-id"], name="action_by_target"),)
        permissions = (
            ("view_console", _("May see the console")),
            ("operate", _("May act on tasks, letters, kinds and providers")),
            ("configure", _("May change the configuration")),
        )

    def __str__(self) -> str:
        return f"{self.username} {self.action}"


class OperatorProfile(models.Model):
    """Preferences of one person at the console."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="operator_profile"
    )
    time_zone = models.CharField(_("time zone"), max_length=64, default="UTC")
    language = models.CharField(_("language"), max_length=16, blank=True)
    theme = models.CharField(
        _("theme"),
        max_length=8,
        default="system",
        choices=[("system", _("as the system")), ("light", _("light")), ("dark", _("dark"))],
    )

    class Meta:
        verbose_name = _("operator profile")
        verbose_name_plural = _("operator profiles")

    def __str__(self) -> str:
        return f"profile of {self.user_id}"


class SignInTries(models.Model):
    """How often a name was tried from an address lately; a row is forgotten once its time is over.

    ``key`` is a digest: what people type as their name is sometimes their password.
    """

    key = models.CharField(_("key"), max_length=64, primary_key=True)
    tries = models.PositiveIntegerField(_("tries"))
    since = models.DateTimeField(_("since"))

    class Meta:
        verbose_name = _("sign-in tries")
        verbose_name_plural = _("sign-in tries")

    def __str__(self) -> str:
        return f"{self.tries} tries since {self.since}"
