"""Kinds and providers with their state and backlog; Pause and Resume of a kind."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from tasks import access, lifecycle
from tasks.models import Kind, Provider
from tasks.views import why
from tasks.views.action import record_action
from tasks.views.answer import answer, reason_from
from tasks.views.backlog import CAP, Backlog, backlog

MOST = 500


@access.page
def kinds(request: HttpRequest) -> HttpResponse:
    """The page."""
    return render(request, "tasks/kinds.html", _context())


@access.page
def kinds_live(request: HttpRequest) -> HttpResponse:
    """Both tables, as they are now."""
    return render(request, "tasks/kinds_live.html", _context())


def _context() -> dict[str, Any]:
    counts, crew = backlog(), why.Crew()
    columns = ("name", "handler", "provider", "model", "paused_at", "paused_by", "pause_reason", "max_attempts")
    providers = {provider.pk: provider for provider in Provider.objects.all()[:MOST]}
    return {
        "kinds": [
            _kind_row(kind, providers.get(kind.provider_id or ""), counts, crew)
            for kind in Kind.objects.only(*columns)[:MOST]
        ],
        "providers": [_provider_row(provider, counts) for provider in providers.values()],
        "cap": CAP,
    }


def _kind_row(kind: Kind, provider: Provider | None, counts: Backlog, crew: why.Crew) -> dict[str, Any]:
    if kind.paused_at:
        state, words = "paused", why.paused(kind)
    elif provider and (stop := _stop(provider)):
        state = stop
        words = _("Provider %(name)s is on hold.") if stop == "held" else _("Provider %(name)s is cooling.")
        words %= {"name": provider.pk}
    elif not crew.runs(kind):
        state, words = "no_worker", why.no_worker(kind, crew)
    else:
        state, words = "", ""
    return {
        "kind": kind,
        "state": state,
        "words": words,
        "ready": counts.ready[kind.pk],
        "running": counts.running[kind.pk],
        "later": counts.later[kind.pk],
    }


def _stop(provider: Provider) -> str:
    """What keeps calls from going there: held, cooling, or nothing."""
    if provider.held_at:
        return "held"
    return "cooling" if provider.cooling_until and provider.cooling_until > timezone.now() else ""


def _provider_row(provider: Provider, counts: Backlog) -> dict[str, Any]:
    state = _stop(provider)
    words = {"held": why.held, "cooling": why.cooling}.get(state, lambda _provider: "")(provider)
    return {
        "provider": provider,
        "state": state,
        "words": words,
        "ready": counts.provider_ready[provider.pk],
        "running": counts.provider_running[provider.pk],
    }


@access.verb
def pause_kind(request: HttpRequest, name: str) -> HttpResponse:
    """Stop claiming tasks of a kind; what runs goes on."""
    kind = get_object_or_404(Kind.objects.only("name"), pk=name)
    reason = reason_from(request)
    if not reason:
        return answer(request, _("Give a reason for the pause."), back=reverse("kinds"), level="error", status=422)
    with transaction.atomic():
        won = lifecycle.pause_kind(kind.pk, by=request.user.get_username(), reason=reason)
        record_action(request, "pause_kind", kind, won=won, outcome="done" if won else "was paused already")
    if not won:
        sentence = _("%(kind)s was paused already.") % {"kind": kind.pk}
        return answer(request, sentence, back=reverse("kinds"), level="warning")
    sentence = _("%(kind)s is paused: nothing more starts, what runs goes on.") % {"kind": kind.pk}
    return answer(request, sentence, back=reverse("kinds"))


@access.verb
def resume_kind(request: HttpRequest, name: str) -> HttpResponse:
    """Claim tasks of a kind again."""
    kind = get_object_or_404(Kind.objects.only("name"), pk=name)
    with transaction.atomic():
        won = lifecycle.resume_kind(kind.pk, by=request.user.get_username())
        record_action(request, "resume_kind", kind, won=won, outcome="done" if won else "was not paused")
    sentence = _("%(kind)s runs again.") if won else _("%(kind)s was not paused.")
    return answer(request, sentence % {"kind": kind.pk}, back=reverse("kinds"), level="success" if won else "warning")
