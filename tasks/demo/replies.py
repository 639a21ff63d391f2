"""What the simulated provider can answer: whole HTTP responses, completions, and ends without an answer. Pure data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Response:
    """One whole HTTP response, sent as it stands."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Completion:
    """An answer of the model. Streamed or whole, as the client wished.

    ``finish`` None: it ends without a finish reason. ``cut``: the connection closes in the middle of the body.
    ``error``: an error object that comes in place of the second half.
    """

    text: str
    finish: str | None = "stop"
    cut: bool = False
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Reset:
    """The connection is reset before the first byte."""


@dataclass(frozen=True)
class Silence:
    """Nothing is ever answered."""


Reply = Response | Completion | Reset | Silence


def error_body(message: str, kind: str | None, code: str | int | None, param: str | None = None) -> dict[str, Any]:
    """An error object of the OpenAI protocol."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def json_response(status: int, value: Any, **headers: str) -> Response:
    """``value`` as JSON; underscores in the header names stand for hyphens."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(status, json.dumps(value).encode(), headers=named)
