"""What a request that cannot be served is answered with: a page, or a message to htmx, with one sentence.

These pages ask no session and no database, for they are shown when a request was stopped before either, or when either
fails.
"""

from __future__ import annotations

import sys

from django.core.exceptions import DisallowedHost, RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tasks.api.problems import headers_of, problem

UNREADABLE = _("The address or the form holds something that cannot be read. Nothing was changed.")
TOO_LARGE = _("This is larger than the 4 MB that one request may hold. Nothing was changed: send it in parts.")
TOO_MANY = _("This form holds more fields than one request may. Nothing was changed: tick fewer rows at once.")
STRANGE_HOST = _("This server does not answer to that name. Whoever runs it adds the name to ALLOWED_HOSTS.")
NOT_UTF_8 = _("This was not sent as UTF-8 text. Nothing was changed.")
AWAY = "The database cannot be reached. Nothing was done; try again in a moment."
BROKEN = "This page failed on our side. Its log has the cause. No task is lost by it."

#: exception → (status, sentence)
SENTENCES: dict[type[Exception], tuple[int, Promise]] = {
    RequestDataTooBig: (413, TOO_LARGE),
    TooManyFieldsSent: (400, TOO_MANY),
    TooManyFilesSent: (400, TOO_MANY),
    DisallowedHost: (400, STRANGE_HOST),
}


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The answer to a request that was stopped by ``exception``: 413 for one too large, else 400."""
    status, sentence = SENTENCES.get(type(exception), (400, UNREADABLE))
    return refuse(request, sentence, status)


def refuse(request: HttpRequest, sentence: str | Promise, status: int = 400) -> HttpResponse:
    """The sentence: as a page, or to htmx as a message beside the page."""
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(
            render_to_string("components/toast_partial.html", {"sentence": sentence, "level": "error"}), status=status
        )
    return HttpResponse(page(sentence), status=status)


def page(sentence: str | Promise) -> str:
    """The page with the sentence."""
    return render_to_string("400.html", {"sentence": sentence})


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for our own failure, called while its exception is handled; 503 while the database is away.

    As plain text where not even that can be rendered (static files not collected); to programs as a problem.
    """
    away = isinstance(sys.exc_info()[1], OperationalError | InterfaceError)
    status, template, sentence = (503, "503.html", AWAY) if away else (500, "500.html", BROKEN)
    if request.path.startswith("/api/"):
        return problem(status, sentence)
    try:
        response = HttpResponse(render_to_string(template), status=status)
    except Exception:
        response = HttpResponse(sentence, status=status, content_type="text/plain; charset=utf-8")
    for name, value in headers_of(status).items():
        response[name] = value
    return response
