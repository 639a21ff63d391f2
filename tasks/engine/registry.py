"""Handlers: functions that run kinds in code, registered under a stable name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tasks import payload_schemas

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered function. ``is_async``: runs in the event loop, else in a thread."""

    name: str
    function: Function
    is_async: bool


_handlers: dict[str, Handler] = {}
_reconcilers: dict[str, Handler] = {}


def handler(name: str, *, payload_schema: dict[str, Any] | None = None) -> Callable[[F], F]:
    """Register the decorated function, sync or async, as the handler ``name``.

    It is called with a context (``tasks.engine.context.Context``: payload, ids, progress, log, llm) and returns any
    JSON value. ``payload_schema``: a JSON Schema that payloads must fit, checked at submit and before the function
    runs. Raises ValueError when another function has that name, for a schema that is none, and for a generator, whose
    body no call would run.
    """

    def register(function: F) -> F:
        made = _made(_handlers, name, function)
        payload_schemas.declare(name, payload_schema)
        _handlers[name] = made
        return function

    return register


def reconcile(name: str) -> Callable[[F], F]:
    """Register the decorated function, sync or async, to tell what became of vanished work of the handler ``name``.

    It is called with a context (``tasks.engine.context.UnknownContext``) after a worker process vanished, and returns
    ``done(result)``, ``not_done`` or ``still_unknown``. It must not do the work: it may be called many times. Raises
    ValueError as ``handler`` does.
    """

    def register(function: F) -> F:
        _reconcilers[name] = _made(_reconcilers, name, function)
        return function

    return register


def _made(where: dict[str, Handler], name: str, function: Function) -> Handler:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ValueError(f"{_place(function)}, for {name!r}, is a generator; it must return its result, not yield it.")
    known = where.get(name)
    if known and _place(known.function) != _place(function):
        raise ValueError(f"The handler name {name!r} is taken by {_place(known.function)}.")
    return Handler(name, function, inspect.iscoroutinefunction(function))


def _place(function: Function) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def find(name: str) -> Handler | None:
    """The handler of that name, if this process knows it."""
    return _handlers.get(name)


def names() -> list[str]:
    """The names of all handlers that this process knows, sorted."""
    return sorted(_handlers)


def find_reconciler(name: str) -> Handler | None:
    """What tells the truth about vanished work of the handler of that name, if this process knows it."""
    return _reconcilers.get(name)


def reconcilers() -> list[str]:
    """The names of all handlers that this process can ask what became of vanished work, sorted."""
    return sorted(_reconcilers)
