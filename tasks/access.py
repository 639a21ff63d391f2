"""Who may see and who may act. Every page and every verb passes one of these doors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_POST, require_safe

VIEW = "tasks.view_console"
OPERATE = "tasks.operate"
CONFIGURE = "tasks.configure"

View = Callable[..., HttpResponseBase]


def holds(permission: str) -> Callable[[View], View]:
    """A decorator: sign in first; then 403 for whoever has not ``permission``."""

    def decorate(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.has_perm(permission):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return login_required(checked)

    return decorate


def page(view: View) -> View:
    """A page or fragment of the console: GET and HEAD only, for everyone who may see it."""
    return require_safe(holds(VIEW)(view))


def verb(view: View) -> View:
    """An action of a person: POST only, for everyone who may act."""
    return require_POST(holds(OPERATE)(view))
