"""``/api/v1/tasks``: submit a task, ask for it, cancel it."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Header, Router, Status

from tasks import lifecycle
from tasks.api.auth import KeyAuth
from tasks.api.problems import problem
from tasks.api.schemas import Accepted, Cancelled, TaskIn, TaskOut
from tasks.api.state import state_of, urls
from tasks.models import Task
from tasks.models.api_key import Scope

router = Router(auth=KeyAuth(Scope.SUBMIT), tags=["tasks"])


@router.post("/tasks", response={202: Accepted}, url_name="tasks", summary="Submit a task")
def submit_task(
    request: HttpRequest,
    task: TaskIn,
    idempotency_key: Annotated[str, Header(alias="Idempotency-Key", max_length=200)] = "",
) -> Any:
    """Take one task. The same ``Idempotency-Key`` and kind with the same payload answer with the first task."""
    fields = task.dict()
    kind, payload = fields.pop("kind"), fields.pop("payload")
    stored = lifecycle.submit(kind, payload, idempotency_key=idempotency_key, **fields)
    if idempotency_key and not _is_same(stored.payload, payload):
        return problem(422, "This Idempotency-Key was used for a task of this kind with another payload.")
    return Status(202, {"id": stored.pk, "status": stored.status, **urls(stored.pk)})


@router.get("/tasks/{uuid:task_id}", response=TaskOut, url_name="task", summary="Where a task stands")
def read_task(request: HttpRequest, task_id: UUID) -> Any:
    """Status, attempts, progress; the result once it succeeded, the reason once it died."""
    return _known(state_of(task_id))


@router.get(
    "/tasks/{uuid:task_id}/events", response=None, url_name="task-events", summary="A task's events as they come"
)
def stream_events(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Server-sent events: the current state first, then each move. ``Last-Event-ID`` or ``?after=`` resume."""
    # Under uvicorn the stream app stands in front of Django and answers; a synchronous server cannot.
    return problem(501, "Events stream only where the web process is started as 'uvicorn config.asgi:application'.")


@router.post("/tasks/{uuid:task_id}/cancel", response={202: Cancelled}, url_name="cancel-task", summary="Cancel a task")
def cancel_task(request: HttpRequest, task_id: UUID) -> Any:
    """Cancel a task that waits, or ask the worker that runs it to stop; 409 where it has ended."""
    changed = lifecycle.cancel([task_id], actor=request.auth.get_username())  # type: ignore[attr-defined]
    state: dict[str, Any] = _known(Task.objects.filter(pk=task_id).values("status", "cancel_requested_at").first())
    if not changed and not state["cancel_requested_at"]:
        return problem(409, f"The task is {state['status']} and cannot be cancelled.")
    outcome = "cancelled" if state["status"] == "cancelled" else "requested"
    return Status(202, {"id": task_id, "status": state["status"], "outcome": outcome})


def _is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal. To Python ``True == 1``; to JSON it is not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _known(state: Any) -> Any:
    if state is None:
        raise Http404("There is no such task.")
    return state
