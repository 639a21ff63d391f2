"""One row for each action of a person: who did what to what, how much of it, why, and what came of it."""

from __future__ import annotations

from typing import Any, Protocol

from django.contrib.auth.models import User

from tasks.models import OperatorAction

#: Longest outcome that a row holds; a longer one is cut with a mark.
OUTCOME_LENGTH = 200


class Actor(Protocol):
    """Who acts: a person who signed in, a program's key, whoever runs a command."""

    def get_username(self) -> str:
        """The name that histories and the audit keep."""


def record(
    user: Actor,
    action: str,
    *,
    target_type: str = "",
    target_id: object = "",
    reason: str = "",
    count: int = 1,
    filter: dict[str, Any] | None = None,
    outcome: str = "done",
    data: dict[str, Any] | None = None,
) -> OperatorAction:
    """Write the row; call it in the transaction of the action itself, so that neither stands without the other.

    ``filter`` is the exact filter of a bulk action, ``count`` what it changed (0: nothing). Lengths are cut to the
    columns, with a mark; nothing else is refused.
    """
    return OperatorAction.objects.create(
        user=user if isinstance(user, User) else None,
        username=user.get_username(),
        action=action,
        target_type=target_type,
        target_id=_cut(str(target_id), 200),
        reason=reason.strip(),
        count=count,
        filter=filter,
        outcome=_cut(outcome, OUTCOME_LENGTH),
        data=data or {},
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
