"""Providers: where prompt kinds send their calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tasks.admin.base import ConfigurationAdmin
from tasks.models import Attempt, Kind, Provider, Task
from tasks.views import why


@admin.register(Provider)
class ProviderAdmin(ConfigurationAdmin):
    """LLM endpoints and their limits. Hold, release and cooling are the console's."""

    list_display = ("name", "base_url", "api_key_env", "state", "simulated")
    search_fields = ("name", "base_url")
    fieldsets = (
        (None, {"fields": ("name", "base_url", "api_key_env", "simulated")}),
        (
            gettext_lazy("Limits"),
            {
                "description": gettext_lazy("Held over all workers. Tasks beyond them wait and cost no attempt."),
                "fields": ("requests_per_minute", "tokens_per_minute", "max_concurrency"),
            },
        ),
        (gettext_lazy("Now"), {"fields": ("state",)}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Provider | None = None) -> tuple[str, ...]:
        """A name is a key: kinds, attempts and letters carry it, so it stays."""
        return ("simulated", "state", "name") if obj else ("simulated", "state")

    @admin.display(description=gettext_lazy("state"))
    def state(self, obj: Provider) -> str:
        """Whether calls go out, with the way to change that."""
        url = reverse("kinds")
        if obj.held_at:
            return format_html('{} <a href="{}">{}</a>', why.held(obj), url, _("Release it"))
        if obj.cooling_until and obj.cooling_until > timezone.now():
            return format_html('{} <a href="{}">{}</a>', why.cooling(obj), url, _("Release it"))
        return _("Calls go out.")

    def derived_fields(self, obj: Provider, form: Any) -> Sequence[str]:
        """The demo's mark belongs to the demo's address."""
        if "base_url" not in form.changed_data or not obj.simulated:
            return ()
        obj.simulated = False
        return ("simulated",)

    def in_use(self, obj: Provider) -> str:
        """A provider that kinds use, or that was used, stays: its name is part of their history."""
        kinds = list(Kind.objects.filter(Q(provider=obj) | Q(backup_provider=obj)).values_list("name", flat=True)[:4])
        if kinds:
            named = ", ".join(kinds[:3]) + ("…" if len(kinds) > 3 else "")
            return _("Provider %(name)s is used by %(kinds)s. Give these kinds another provider first.") % {
                "name": obj.name,
                "kinds": named,
            }
        if Attempt.objects.filter(provider=obj).exists() or Task.objects.filter(lane__provider=obj).exists():
            return _(
                "Provider %(name)s has tasks in its history and cannot be deleted. A provider that no kind uses costs"
                " nothing: leave it."
            ) % {"name": obj.name}
        return ""

    def delete_model(self, request: HttpRequest, obj: Provider) -> None:
        """Take its lanes along, which are empty."""
        with transaction.atomic():
            obj.lanes.all().delete()
            obj.delete()
