"""Reading an exception of any library into a Failure, by the attributes that libraries agree on. Never raises."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from tasks.errors.failure import BODY_BYTES, CAUSES_KEPT, LAST_ERROR_BYTES, TRACEBACK_BYTES, Failure, as_status
from tasks.errors.text import as_text, cut

#: Bodies beyond this are not parsed: nothing that says why a call failed is that long.
_PARSED_BYTES = 1024 * 1024


def capture(error: BaseException, *, provider: str | None = None) -> Failure:
    """The Failure of ``error``; status, headers and body come from it or from the nearest cause that has them."""
    chain = list(causes(error))
    status: int | None = None
    headers: dict[str, str] = {}
    body: Any = None
    for link in (error, *chain):
        status = status if status is not None else _status(link)
        headers = headers or _headers(link)
        body = body if body is not None else _body(link)
    return Failure(
        exception=class_name(error),
        message=cut(as_text(error), LAST_ERROR_BYTES * 4),
        http_status=status,
        headers=headers,
        body=_sized(body),
        traceback=_traceback(error),
        provider=provider,
        cause_chain=tuple(describe(cause) for cause in chain),
    )


def class_name(error: BaseException) -> str:
    """``module.Class`` of an exception."""
    kind = type(error)
    return f"{kind.__module__}.{kind.__qualname__}"


def describe(error: BaseException) -> str:
    """``module.Class: message``."""
    return f"{class_name(error)}: {cut(as_text(error), LAST_ERROR_BYTES * 4)}"


def causes(error: BaseException) -> Iterator[BaseException]:
    """What ``error`` was raised from, innermost last; of a group, its leaves.

    Only explicit causes: the context of an exception raised while another was handled is often mere company.
    """
    seen = {id(error)}
    waiting = _next(error)
    while waiting and len(seen) <= CAUSES_KEPT:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting = _next(link) + waiting


def _next(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [*error.exceptions]
    return [error.__cause__] if error.__cause__ is not None else []


def _attribute(thing: Any, name: str) -> Any:
    """``thing.name``, or None where reading it fails (an httpx response whose body was never read raises)."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def _status(error: BaseException) -> int | None:
    response = _attribute(error, "response")
    metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    candidates = (
        _attribute(response, "status_code"),
        _attribute(response, "status"),
        metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None,
        *(_attribute(error, name) for name in ("status_code", "http_status", "status", "code")),
    )
    return next((as_status(value) for value in candidates if isinstance(value, int) and as_status(value)), None)


def _headers(error: BaseException) -> dict[str, str]:
    response = _attribute(error, "response")
    metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    candidates = (
        _attribute(response, "headers"),
        metadata.get("HTTPHeaders") if isinstance(metadata, Mapping) else None,
        _attribute(error, "headers"),
    )
    for headers in candidates:
        try:
            if headers:
                return {as_text(name).lower(): as_text(value) for name, value in dict(headers).items()}
        except (TypeError, ValueError):
            continue
    return {}


def _body(error: BaseException) -> Any:
    response = _attribute(error, "response")
    if isinstance(response, Mapping):
        return {name: value for name, value in response.items() if name != "ResponseMetadata"}
    for value in (_attribute(error, "body"), _attribute(response, "text"), _attribute(error, "response_body")):
        if isinstance(value, Mapping | list):
            return value
        if isinstance(value, str | bytes) and value:
            return _parsed(as_text(value))
    return None


def _parsed(text: str) -> Any:
    """The JSON in ``text`` if it is an object or a list, else the text."""
    if len(text) > _PARSED_BYTES or text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _sized(body: Any) -> Any:
    """A text body cut to a generous size; JSON is kept whole until it is stored, so that it can be read."""
    return cut(body, BODY_BYTES * 4) if isinstance(body, str) else body


def _traceback(error: BaseException) -> str:
    """The traceback as Python prints it, its end kept when it is cut: beyond what is stored, as it is masked there."""
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:
        text = describe(error)
    return cut(as_text(text), TRACEBACK_BYTES * 4, tail=TRACEBACK_BYTES * 2)
