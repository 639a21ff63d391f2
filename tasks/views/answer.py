"""How a verb answers: with a sentence. To htmx as a message beside the page, else as a message on the next page."""

from __future__ import annotations

from typing import Literal

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect, trigger_client_event

Level = Literal["success", "info", "warning", "error"]


def answer(
    request: HttpRequest, sentence: str, *, back: str, level: Level = "success", status: int = 200, go: bool = False
) -> HttpResponse:
    """Say what happened.

    With htmx: a message in ``#toasts`` and the event ``acted``, at which live regions refresh and the open sheet
    closes; ``status`` 422 (a bad form) leaves the sheet open. Without: a redirect to the form's ``next`` or to
    ``back``. ``go`` leads to ``back`` in both cases (the thing looked at has moved).
    """
    if not request.htmx or go:  # type: ignore[attr-defined]
        messages.add_message(request, getattr(messages, level.upper()), sentence)
        target = _next(request) or back
        if request.htmx:  # type: ignore[attr-defined]
            return HttpResponseClientRedirect(target)
        return _see_other(target)
    response = render(request, "components/toast_partial.html", {"sentence": sentence, "level": level}, status=status)
    return trigger_client_event(response, "acted") if status < 400 else response


def _see_other(url: str) -> HttpResponse:
    response = HttpResponseRedirect(url)
    response.status_code = 303
    return response


def _next(request: HttpRequest) -> str:
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if safe else ""


def reason_from(request: HttpRequest) -> str:
    """The reason that a sheet asked for (its field ``reason``), stripped and cut to 2,000 characters; may be empty."""
    return request.POST.get("reason", "").strip()[:2_000]
