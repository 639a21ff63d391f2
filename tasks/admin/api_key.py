"""API keys: which there are, and an end to them."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tasks import audit
from tasks.admin.base import ReadOnly
from tasks.models import ApiKey


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnly):
    """Made by ``manage.py createapikey``, which shows the key once; revoked here, for good."""

    list_display = ("name", "start", "scope", "created_at", "created_by", "revoked_at")
    search_fields = ("name", "start")
    fields = ("name", "start", "scope", "created_at", "created_by", "revoked_at")
    actions = ("revoke",)

    @admin.action(description=gettext_lazy("Revoke: programs that use them are refused from now on"))
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """End the chosen keys; one that was revoked before is left as it is."""
        with transaction.atomic():
            keys = list(queryset.select_for_update().filter(revoked_at__isnull=True))
            ApiKey.objects.filter(pk__in=[key.pk for key in keys]).update(revoked_at=Now())
            for key in keys:
                audit.record(
                    request.user, "revoke_api_key", target_type="api_key", target_id=key.pk, data={"name": key.name}
                )
        messages.success(
            request,
            ngettext("%d key was revoked.", "%d keys were revoked.", len(keys)) % len(keys)
            if keys
            else _("These keys were revoked before."),
        )
