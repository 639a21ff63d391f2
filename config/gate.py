"""What stands before Django in the web process: requests that it would choke on, or write to the disk whole."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.utils.functional import Promise

from config import refusals
from config.text import is_utf_8
from tasks.api import problems

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class TooLarge(Exception):
    """A body that goes on beyond the limit."""


class Gate:
    """An ASGI application around ``application``: answers 413 to a body over DATA_UPLOAD_MAX_MEMORY_SIZE.

    Django under ASGI reads a body to its end, and to the disk, before it looks at its size: anybody could fill the
    disk. And a content type whose charset no one knows fails there before any error page is at hand: 400.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it."""
        if scope["type"] != "http":
            return await self.application(scope, receive, send)
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not is_utf_8(headers.get(b"content-type", "")):
            return await _answer(scope, send, 400, refusals.NOT_UTF_8)
        try:
            await self.application(scope, _counted(receive, headers.get(b"content-length", "")), send)
        except TooLarge:
            await _answer(scope, send, 413, refusals.TOO_LARGE)


def _counted(receive: Receive, announced: str) -> Receive:
    """``receive`` up to the limit; raises TooLarge at once where the body announces that it is longer."""
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
    room = -1 if announced.isascii() and announced.isdigit() and int(announced[:20]) > most else most

    async def counted() -> Message:
        nonlocal room
        if room < 0:
            raise TooLarge
        message = await receive()
        room -= len(message.get("body", b""))
        if room < 0:
            raise TooLarge
        return message

    return counted


async def _answer(scope: Scope, send: Send, status: int, sentence: str | Promise) -> None:
    if scope["path"].startswith("/api/"):
        body, media = json.dumps(problems.body_of(status, str(sentence))).encode(), problems.MEDIA_TYPE
    else:
        body, media = refusals.page(sentence).encode(), "text/html; charset=utf-8"
    headers = [
        (b"content-type", media.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
