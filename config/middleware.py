"""What every request passes through besides Django's own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ClassVar
from urllib.parse import urlencode
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, QueryDict, UnreadablePostError
from django.utils import timezone, translation
from django.utils.cache import add_never_cache_headers
from django_htmx.http import HttpResponseClientRedirect
from whitenoise.middleware import WhiteNoiseMiddleware

from config import refusals
from config.text import all_storable, is_storable, is_utf_8
from tasks.api import health
from tasks.api.problems import MEDIA_TYPE, problem
from tasks.models import OperatorProfile

GetResponse = Callable[[HttpRequest], HttpResponseBase]
logger = logging.getLogger(__name__)


class ReadableMiddleware:
    """Nothing behind it meets text that no column can hold: such an address is 404, such a form or query 400.

    A cookie of that sort counts as not sent: a browser with a broken one must be able to sign in again.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Refuse the request, or pass it on without its broken cookies."""
        if not is_storable(request.path):
            raise Http404
        if not is_utf_8(request.headers.get("content-type", "")):
            return refusals.refuse(request, refusals.NOT_UTF_8)
        request.encoding = "utf-8"  # by the one of its names that Django takes for a form
        if not all_storable(request.GET) or not all_storable(_form(request)):
            raise BadRequest
        for name in [name for name, value in request.COOKIES.items() if not f"{name}{value}".isprintable()]:
            del request.COOKIES[name]
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """A number or a time beyond what the database or the calendar knows came with the request."""
        if not isinstance(exception, DataError | OverflowError):
            return None
        logger.warning("%s %s holds a value out of range", request.method, request.path, exc_info=exception)
        return refusals.bad_request(request, exception)


def _form(request: HttpRequest) -> QueryDict:
    """What was posted. Raises BadRequest where it cannot be read (a part that names a charset of its own, say).

    The API takes JSON whatever it is called: reading it as a form would leave no body to read.
    """
    if request.path.startswith("/api/"):
        return QueryDict()
    try:
        return request.POST
    except (UnreadablePostError, LookupError, ValueError) as error:
        raise BadRequest from error


class UncachedMiddleware:
    """No page is kept by any cache, the admin's and the refusals included; static files say for themselves how long."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Mark the answer."""
        response = self.get_response(request)
        if not response.has_header("Cache-Control"):
            add_never_cache_headers(response)
        return response


class StaticMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # whitenoise carries no types
    """WhiteNoise whose answer is a plain response: under ASGI a file response is read whole anyway, with a warning."""

    @staticmethod
    def serve(static_file, request):  # type: ignore[no-untyped-def]
        """The file as one body, with WhiteNoise's status and headers."""
        response = static_file.get_response(request.method, request.META)
        body = b""
        if response.file is not None:
            with response.file as file:
                body = file.read()
        answer = HttpResponse(body, status=int(response.status))
        del answer["content-type"]
        for key, value in response.headers:
            answer[key] = value
        return answer


class ProbeMiddleware:
    """Health probes are answered before anything else is asked: by any host's name, without session or person."""

    PROBES: ClassVar[dict[str, GetResponse]] = {"/healthz": health.alive, "/readyz": health.ready}

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The probe's answer, or what follows."""
        return self.PROBES.get(request.path, self.get_response)(request)


class ProblemMiddleware:
    """Below ``/api/`` every error is a problem, also those that no router of the API has seen."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Put a problem in the place of a page that says the same, and keep its headers that still hold."""
        response = self.get_response(request)
        if response.status_code < 400 or not request.path.startswith("/api/"):
            return response
        if response.headers.get("Content-Type", "") == MEDIA_TYPE:
            return response
        answer = problem(response.status_code, _SENTENCES.get(response.status_code, "The request was refused."))
        if "Allow" in response.headers:
            answer["Allow"] = response.headers["Allow"]
        return answer


_SENTENCES = {
    404: "There is nothing at this address.",
    405: "This address does not take this method.",
    500: "Something failed here; it is in the log.",
}


class HtmxLoginMiddleware:
    """An expired login met by a fragment leads the whole page to the login, not the login page into the fragment."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Turn a redirect to the login into one that htmx follows as a navigation."""
        response = self.get_response(request)
        location = response.headers.get("Location", "")
        if not (request.htmx and response.status_code == 302 and location.startswith(settings.LOGIN_URL)):  # type: ignore[attr-defined]
            return response
        return HttpResponseClientRedirect(f"{settings.LOGIN_URL}?{urlencode({'next': _page_of(request)})}")


def _page_of(request: HttpRequest) -> str:
    """The page that holds the fragment, as the browser names it; the start where that is no address of ours."""
    try:
        return request.htmx.current_url_abs_path or "/"  # type: ignore[attr-defined]
    except ValueError:
        return "/"


class OperatorMiddleware:
    """Times are shown in the operator's zone, texts in the operator's language, pages in the operator's theme.

    Sets ``request.theme`` (system, light, dark) and ``request.zone_label``. Without a profile: UTC, and the language
    the browser asks for.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Apply the preferences for the length of this request."""
        profile = self._profile(request)
        zone = _zone(profile.time_zone if profile else settings.TIME_ZONE)
        request.theme = profile.theme if profile else "system"  # type: ignore[attr-defined]
        request.zone_label = str(zone)  # type: ignore[attr-defined]
        language = profile.language if profile and profile.language else translation.get_language()
        with timezone.override(zone), translation.override(language):
            request.LANGUAGE_CODE = language or settings.LANGUAGE_CODE
            return self.get_response(request)

    @staticmethod
    def _profile(request: HttpRequest) -> OperatorProfile | None:
        if not request.user.is_authenticated:
            return None
        return OperatorProfile.objects.filter(user=request.user).first()


def _zone(name: str) -> ZoneInfo:
    """The zone, or UTC where this machine does not know it (its zone data may be older than the one it was set on)."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
