"""The handlers that come with Redrive."""

from __future__ import annotations

from typing import Any

from tasks.engine.context import Context
from tasks.engine.registry import handler


@handler("django_q.call")
def django_q_call(context: Context) -> Any:
    """Run one call of django-q2's ``async_task`` or of a ``Schedule``."""
    # Imported when the first call runs: django-q2's modules want the apps to be ready.
    from tasks.engine.django_q_call import run

    return run(context)
