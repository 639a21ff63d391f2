"""What people did."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django_htmx.http import push_url

from tasks import access
from tasks.filters import AuditFilter
from tasks.models import OperatorAction
from tasks.paging import Page, keyset
from tasks.views.limits import TooSlow, patience


@access.page
def audit_list(request: HttpRequest) -> HttpResponse:
    """The list; to htmx only the part below the filter bar."""
    wanted = AuditFilter(request.GET)
    context = {"filter": wanted, "page": Page[OperatorAction]([])}
    try:
        with patience():
            context["page"] = keyset(wanted.narrow(OperatorAction.objects.all()), request.GET)
    except TooSlow:
        context["too_slow"] = True
    partial = request.htmx and request.htmx.request_type == "partial"  # type: ignore[attr-defined]
    response = render(request, "tasks/audit_list.html" if partial else "tasks/audit.html", context)
    patch_vary_headers(response, ("HX-Request", "HX-Request-Type"))
    return push_url(response, reverse("audit") + wanted.query) if partial else response
