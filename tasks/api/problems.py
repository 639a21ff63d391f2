"""Errors as RFC 9457 problems: ``application/problem+json`` with title, status and a sentence."""

from __future__ import annotations

import http
import json
from typing import Any

from django.http import HttpResponse

MEDIA_TYPE = "application/problem+json"
#: Seconds after which it is worth asking again when the database is away.
RETRY_AFTER_SECONDS = 5


def body_of(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """The problem as a JSON object. ``more``: members of our own, such as ``errors``."""
    return {"type": "about:blank", "title": http.HTTPStatus(status).phrase, "status": status, "detail": detail, **more}


def problem(status: int, detail: str, **more: Any) -> HttpResponse:
    """The problem as a response; a 401 says how to authenticate, a 503 when to come again."""
    text = json.dumps(body_of(status, detail, **more), ensure_ascii=False)
    # A sentence may quote what the caller wrote, half a surrogate pair too, which no UTF-8 holds.
    response = HttpResponse(text.encode(errors="replace"), content_type=MEDIA_TYPE, status=status)
    for name, value in headers_of(status).items():
        response[name] = value
    return response


def headers_of(status: int) -> dict[str, str]:
    """The headers that belong to a status, whoever sends it."""
    more = {401: {"WWW-Authenticate": 'Bearer realm="redrive"'}, 503: {"Retry-After": str(RETRY_AFTER_SECONDS)}}
    return {"Cache-Control": "no-store", **more.get(status, {})}
