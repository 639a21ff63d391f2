"""Hold and Release of a provider."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _

from tasks import access, lifecycle
from tasks.models import Provider
from tasks.views.action import record_action
from tasks.views.answer import answer, reason_from


@access.verb
def hold_provider(request: HttpRequest, name: str) -> HttpResponse:
    """Send nothing more to a provider until it is released; calls under way go on."""
    provider = get_object_or_404(Provider.objects.only("name"), pk=name)
    reason = reason_from(request)
    if not reason:
        return answer(request, _("Give a reason for the hold."), back=reverse("kinds"), level="error", status=422)
    with transaction.atomic():
        won = lifecycle.hold_provider(provider.pk, by=request.user.get_username(), reason=reason)
        record_action(request, "hold_provider", provider, won=won, outcome="done" if won else "was on hold already")
    if not won:
        sentence = _("%(provider)s was on hold already.") % {"provider": provider.pk}
        return answer(request, sentence, back=reverse("kinds"), level="warning")
    sentence = _("%(provider)s is on hold: no call starts, what runs goes on.") % {"provider": provider.pk}
    return answer(request, sentence, back=reverse("kinds"))


@access.verb
def release_provider(request: HttpRequest, name: str) -> HttpResponse:
    """End a provider's hold and its cooling."""
    provider = get_object_or_404(Provider.objects.only("name"), pk=name)
    with transaction.atomic():
        won = lifecycle.release_provider(provider.pk, by=request.user.get_username())
        record_action(request, "release_provider", provider, won=won, outcome="done" if won else "was not stopped")
    if not won:
        sentence = _("%(provider)s was neither on hold nor cooling.") % {"provider": provider.pk}
        return answer(request, sentence, back=reverse("kinds"), level="warning")
    sentence = _("%(provider)s is released: its tasks start again.") % {"provider": provider.pk}
    return answer(request, sentence, back=reverse("kinds"))
