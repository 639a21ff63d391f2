"""Keys for tests, and a client that sends one."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from tasks.models import ApiKey
from tasks.models.api_key import SHOWN, digest_of, new_key


def make_key(scope: str = "submit", name: str = "shop") -> str:
    """A usable key."""
    key = new_key()
    ApiKey.objects.create(name=name, scope=scope, start=key[:SHOWN], digest=digest_of(key))
    return key


class Caller:
    """A program that speaks JSON with a key, or without one."""

    def __init__(self, key: str | None) -> None:
        self._client = Client(raise_request_exception=False)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def get(self, path: str, **headers: str) -> Any:
        """GET below /api/v1."""
        return self._client.get(f"/api/v1{path}", headers={**self._headers, **headers})

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        """POST below /api/v1; bytes and text are sent as they are."""
        data = body if isinstance(body, bytes | str) else "" if body is None else json.dumps(body)
        sent = {**self._headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        content_type = sent.pop("Content-Type", "application/json")
        return self._client.post(f"/api/v1{path}", data, content_type=content_type, headers=sent)


def caller(scope: str = "submit", name: str = "shop") -> Caller:
    """A program with a new key of that scope."""
    return Caller(make_key(scope, name))
