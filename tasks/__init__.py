"""Redrive's engine. What is listed in ``__all__`` is the whole of its Python interface; it imports no model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasks.engine.registry import handler, reconcile
from tasks.engine.truth import done, not_done, still_unknown

if TYPE_CHECKING:
    from tasks.models import Task

__all__ = ["done", "handler", "not_done", "reconcile", "still_unknown", "submit"]


def submit(kind: str, payload: Any, **options: Any) -> Task:
    """Submit a task in the caller's transaction; see ``tasks.lifecycle.submit_many`` for the options.

    Returns the task, whose ``id`` is final. Raises ``tasks.lifecycle.SubmitError`` with a sentence when the kind is
    unknown or a value cannot be taken.
    """
    from tasks import lifecycle

    return lifecycle.submit(kind, payload, **options)
