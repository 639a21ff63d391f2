"""The last moments at which a call may be kept back: when the connection stands, and before its body is sent.

A process may be frozen anywhere between its decision to call and the call, for longer than its lease: meanwhile others
run the task to its end. What it finds on waking must be asked as late as can be.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import httpx2

#: Asked before each call of this asyncio task; returns whether it may be sent.
MaySend = Callable[[], bool]
may_send: ContextVar[MaySend | None] = ContextVar("may_send", default=None)


class KeptBack(BaseException):
    """The call was not sent. No Exception: neither the SDK nor its transport may take it for a fault of theirs."""


async def keep_back(request: httpx2.Request) -> None:
    """A request hook of the client: asks now, and again when the headers and the body are about to be written.

    Headers alone start nothing: a provider that never gets the body sees a broken request.
    """
    ask = may_send.get()
    if ask is None:
        return
    _check(ask)

    async def trace(event: str, info: dict[str, Any]) -> None:
        if event.endswith(("send_request_headers.started", "send_request_body.started")):
            _check(ask)

    request.extensions = {**request.extensions, "trace": trace}


def _check(ask: MaySend) -> None:
    if not ask():
        raise KeptBack
