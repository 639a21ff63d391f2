"""An LLM endpoint and its limits."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from tasks.environment import is_reserved
from tasks.models.ranges import Within, once_in_any_case, range_checks

#: A name; so a key that was pasted here by mistake is refused, and not repeated in the message.
VARIABLE_NAME = RegexValidator(
    r"^[A-Za-z_][A-Za-z0-9_]*\Z", _("Give the name of an environment variable, such as OPENAI_API_KEY, not the key.")
)

RANGES = {
    "requests_per_minute": Within(1, 10_000_000),
    "tokens_per_minute": Within(1, 2_000_000_000),
    "max_concurrency": Within(1, 1_000_000),
}


def check_key_variable(name: str) -> None:
    """Raise ValidationError for a variable that is not a provider's to have: its value would be sent to the address."""
    if is_reserved(name):
        raise ValidationError(
            _(
                "%(name)s is a setting of Redrive or of the system, and is sent to no provider. Keep the key in a"
                " variable of its own, such as ACME_API_KEY."
            ),
            params={"name": name},
        )


def check_base_url(url: str) -> None:
    """Raise ValidationError for what is no address of an API.

    Django's own URL check refuses the one-word hosts of container networks (http://ollama:11434/v1), and takes
    passwords and queries, which would end up in pages and break the paths that are added.
    """
    try:
        parts = urlsplit(url)
        usable = (
            parts.scheme in ("http", "https")
            and parts.hostname
            and parts.port != 0
            and url.isprintable()
            and not any(map(str.isspace, url))
        )
    except ValueError:
        usable = False
    if not usable:
        raise ValidationError(_("Give an address that starts with http:// or https:// and a host."))
    if parts.username is not None or parts.query or parts.fragment:
        raise ValidationError(_("An address takes no user, password, ? or #; the key is read from its variable."))
    if parts.path.rstrip("/").endswith("/chat/completions"):
        raise ValidationError(_("Leave out /chat/completions: every call adds it."))


class Provider(models.Model):
    """Where prompt kinds send their calls: any endpoint that speaks the OpenAI chat protocol."""

    name = models.SlugField(_("name"), primary_key=True, max_length=100, help_text=_("How kinds refer to it."))
    base_url = models.CharField(
        _("base URL"),
        max_length=500,
        validators=[check_base_url],
        help_text=_("The address before /chat/completions, for example https://api.example.com/v1"),
    )
    api_key_env = models.CharField(
        _("API key variable"),
        max_length=100,
        blank=True,
        validators=[VARIABLE_NAME, check_key_variable],
        help_text=_(
            "Name of the environment variable of the worker that holds the key. The key itself is never stored."
            " Settings of Redrive and of the system (SECRET_KEY, REDRIVE_…, PG…, PATH, …_URL) are refused."
        ),
    )
    requests_per_minute = models.PositiveIntegerField(
        _("requests per minute"),
        null=True,
        blank=True,
        validators=[RANGES["requests_per_minute"]],
        help_text=_(
            "Calls begun in any minute, over all workers; a repair within an attempt counts, too. Empty: no limit."
        ),
    )
    tokens_per_minute = models.PositiveIntegerField(
        _("tokens per minute"),
        null=True,
        blank=True,
        validators=[RANGES["tokens_per_minute"]],
        help_text=_(
            "Tokens sent and received in any minute, over all workers; what runs counts by average. Empty: no limit."
        ),
    )
    max_concurrency = models.PositiveIntegerField(
        _("calls at once"),
        null=True,
        blank=True,
        validators=[RANGES["max_concurrency"]],
        help_text=_("Tasks under way there at once, over all workers. Empty: no limit."),
    )
    simulated = models.BooleanField(
        _("simulated"), default=False, help_text=_("A demo provider: no model answers, no money is spent.")
    )
    held_at = models.DateTimeField(_("held since"), null=True, blank=True, editable=False)
    hold_reason = models.TextField(_("reason of the hold"), blank=True, editable=False)
    hold_code = models.CharField(_("error code of the hold"), max_length=64, blank=True, editable=False)
    held_by = models.CharField(_("held by"), max_length=150, blank=True, editable=False)
    cooling_until = models.DateTimeField(_("cooling until"), null=True, blank=True, editable=False)
    cooling_reason = models.TextField(_("reason it cools"), blank=True, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        ordering = ("name",)
        verbose_name = _("provider")
        verbose_name_plural = _("providers")
        constraints = (
            once_in_any_case("provider", "name"),
            *range_checks("provider", RANGES),
            models.CheckConstraint(
                name="provider_hold_has_reason", condition=Q(held_at__isnull=True) | ~Q(hold_reason="")
            ),
        )

    def __str__(self) -> str:
        return self.name
