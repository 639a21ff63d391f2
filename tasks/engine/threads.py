"""Calls of a user's function in a thread."""

from __future__ import annotations

from typing import Any

from django.db import connections


def call(function: Any, context: Any) -> tuple[Any, BaseException | None]:
    """(value, error) of a sync function. Not raised: a future takes no StopIteration, and would never end."""
    try:
        return function(context), None
    except BaseException as error:
        return None, error
    finally:
        # Not kept for the next one: an idle thread has no use for a connection, and there may be thousands of threads.
        connections.close_all()
