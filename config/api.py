"""The HTTP API: its routers under ``/api/v1``, and every error as a problem."""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from deadletters.api import router as dead_letters
from tasks.api.auth import NotAllowed
from tasks.api.problems import problem
from tasks.api.router import router as tasks
from tasks.lifecycle import SubmitError
from tasks.payload_schemas import TOP

logger = logging.getLogger(__name__)

api = NinjaAPI(title="Redrive", version="1", docs_url=None, urls_namespace="api-1")
api.add_router("", tasks)
api.add_router("/dead-letters", dead_letters)


@api.exception_handler(AuthenticationError)
def _unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return problem(401, "Send 'Authorization: Bearer KEY' with a key that was made by 'manage.py createapikey'.")


@api.exception_handler(NotAllowed)
def _not_allowed(request: HttpRequest, error: NotAllowed) -> HttpResponse:
    return problem(403, str(error))


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return problem(404, str(error) or "There is nothing here.")


@api.exception_handler(SubmitError)
def _refused(request: HttpRequest, error: SubmitError) -> HttpResponse:
    faults = [
        {"field": "payload" if field == TOP else f"payload.{field}", "message": message}
        for misfit in error.payloads.values()
        for field, message in misfit.fields
    ]
    return problem(422, str(error), **({"errors": faults} if faults else {}))


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    faults = [{"field": _field(fault["loc"]), "message": fault["msg"]} for fault in error.errors]
    return problem(422, "; ".join(f"{fault['field']}: {fault['message']}" for fault in faults), errors=faults)


def _field(location: tuple[Any, ...]) -> str:
    """The field as the caller wrote it: without where it was looked for and the name of our parameter."""
    return ".".join(str(part) for part in location[2:] or location[1:]) or "body"


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, ValueError | RecursionError):
        return problem(error.status_code, f"The body cannot be read as JSON: {error.__cause__}")
    return problem(error.status_code, str(error))


@api.exception_handler(RequestDataTooBig)
def _too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return problem(413, "The body is too large; a payload has at most 1 MiB.")


@api.exception_handler(UnreadablePostError)
def _cut(request: HttpRequest, error: UnreadablePostError) -> HttpResponse:
    return problem(400, "The body ended before all of it was there.")


@api.exception_handler(OperationalError)
@api.exception_handler(InterfaceError)
def _away(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.warning("A request met no database: %s", error)
    return problem(503, "The database cannot be reached; nothing was done. Try again.")
