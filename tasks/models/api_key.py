"""Keys of programs that use the HTTP API. Only a digest is stored: a key is shown once, when it is made."""

from __future__ import annotations

import hashlib
import secrets
from typing import ClassVar, Self

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

#: What every key begins with, so that scanners of leaked secrets, and our own masking, know one when they see it.
MARK = "redrive_"
#: Characters of a key that are kept to tell keys apart; the rest has 256 bits.
SHOWN = len(MARK) + 6


class Scope(models.TextChoices):
    """What a key opens. ``operate`` includes ``submit``."""

    SUBMIT = "submit", _("submit tasks, watch and cancel them")
    OPERATE = "operate", _("also read dead letters and reprocess them")


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """Reads of the keys."""

    def usable(self) -> Self:
        """Keys that nobody has revoked."""
        return self.filter(revoked_at__isnull=True)


class ApiKey(models.Model):
    """One program's key."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(_("name"), max_length=100, help_text=_("The program that uses it."))
    scope = models.CharField(_("scope"), max_length=16, choices=Scope)
    start = models.CharField(_("begins with"), max_length=SHOWN)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(_("made"), db_default=Now())
    created_by = models.CharField(_("made by"), max_length=150, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    objects: ClassVar[ApiKeyQuerySet] = ApiKeyQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ("name", "id")
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        constraints = (
            models.UniqueConstraint(
                fields=("name",), condition=models.Q(revoked_at__isnull=True), name="api_key_name_once"
            ),
            models.CheckConstraint(name="api_key_scope_known", condition=models.Q(scope__in=Scope.values)),
        )

    def __str__(self) -> str:
        return self.name

    def get_username(self) -> str:
        """The name by which histories and the audit know it."""
        return f"key {self.name}"

    def allows(self, scope: str) -> bool:
        """Whether it opens what ``scope`` opens."""
        return self.scope in (Scope.OPERATE, scope)


def new_key() -> str:
    """A key that was never used before."""
    return MARK + secrets.token_urlsafe(32)


def digest_of(key: str) -> str:
    """What is stored of it. A plain hash is right for 256 random bits: there is nothing to guess."""
    return hashlib.sha256(key.encode()).hexdigest()
