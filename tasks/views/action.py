"""The audit row of a verb on one thing: the same for all of them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from uuid import UUID

from django.http import HttpRequest

from tasks import audit
from tasks.models import Kind, Provider, Task
from tasks.views.answer import reason_from


def record_action(
    request: HttpRequest, action: str, target: Task | Kind | Provider, *, won: bool | AbstractSet[UUID], outcome: str
) -> None:
    """Write down what a person did to one thing, or tried to, with the reason that the sheet asked for.

    ``won``: whether it had an effect (or the ids on which it had); ``outcome``: what came of it. To be called in the
    transaction of the action itself.
    """
    audit.record(
        request.user,
        action,
        target_type=str(target._meta.model_name),
        target_id=target.pk,
        reason=reason_from(request),
        count=int(bool(won)),
        outcome=outcome,
    )
