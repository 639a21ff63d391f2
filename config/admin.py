"""Our admin site: open to the people who may configure."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from tasks import audit
from tasks.access import CONFIGURE
from tasks.views.sign_in import SignOut


class RedriveAdminSite(AdminSite):
    """Django admin for configuration: providers, kinds, codes, rules, users."""

    site_header = _("Redrive configuration")
    site_title = "Redrive"
    index_title = _("Configuration")

    def has_permission(self, request: HttpRequest) -> bool:
        """An active user who may configure."""
        return bool(request.user.is_active and request.user.has_perm(CONFIGURE))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The console's sign-in: one door. Who is signed in and may not configure gets 403, not a second login."""
        if request.user.is_authenticated and not self.has_permission(request):
            raise PermissionDenied
        target = request.GET.get("next") or reverse(f"{self.name}:index")
        return HttpResponseRedirect(f"{settings.LOGIN_URL}?{urlencode({'next': target})}")

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:  # type: ignore[override]
        """The console's sign-out, which leaves an audit row."""
        return SignOut.as_view()(request)

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Django's page, with an audit row once the password is changed."""
        with transaction.atomic():
            response = super().password_change(request, extra_context)
            if request.method == "POST" and response.status_code == 302:
                audit.record(request.user, "change_password", target_type="user", target_id=request.user.pk)
        return response

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Redrive's own models first."""
        return sorted(super().get_app_list(request, app_label), key=lambda app: app["app_label"] != "tasks")
