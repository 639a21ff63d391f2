"""Who calls: a bearer key, its digest looked up in one indexed query."""

from __future__ import annotations

from django.http import HttpRequest
from ninja.security import HttpBearer

from tasks.models import ApiKey
from tasks.models.api_key import Scope, digest_of


class KeyAuth(HttpBearer):
    """``Authorization: Bearer KEY`` with a key of at least ``scope``; the key is then ``request.auth``."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> ApiKey | None:
        """The key, or None: unknown or revoked. Raises NotAllowed where its scope does not reach."""
        key = find_key(token)
        if key and not key.allows(self.scope):
            raise NotAllowed(f"The key “{key.name}” has the scope {key.scope}; this needs {self.scope.value}.")
        return key


class NotAllowed(Exception):
    """A known key that may not do this; the message says which scope it lacks."""


def find_key(token: str) -> ApiKey | None:
    """The usable key that ``token`` is, or None."""
    try:
        digest = digest_of(token)
    except UnicodeEncodeError:
        return None
    return ApiKey.objects.usable().filter(digest=digest).first()
