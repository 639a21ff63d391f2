"""What goes in and out, as pydantic models. Nothing a stranger wrote into an error goes out: see ``Death``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from ninja import Schema
from pydantic import AwareDatetime, ConfigDict, Field, StrictInt, StrictStr

Text = Annotated[StrictStr, Field(max_length=200)]


class TaskIn(Schema):
    """A task to submit; every field beyond ``kind`` and ``payload`` may be left out."""

    model_config = ConfigDict(extra="forbid")

    kind: StrictStr
    payload: Any
    priority: StrictInt | None = None
    run_after: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None
    session_id: Text = ""
    user_id: Text = ""
    trace_id: Text = ""
    tags: tuple[StrictStr, ...] = ()
    webhook_url: StrictStr = ""


class Accepted(Schema):
    """The answer to a submit."""

    id: UUID
    status: str
    status_url: str
    events_url: str


class Death(Schema):
    """Why a task died, in the catalogue's words: never the provider's error or a traceback."""

    code: str
    reason: str
    message: str


class TaskOut(Schema):
    """Where a task stands. ``attempts``: counted failures of this cycle; ``result`` once it succeeded."""

    id: UUID
    kind: str
    status: str
    cycle: int
    attempts: int
    max_attempts: int
    priority: int
    progress: Any = None
    created_at: datetime
    run_after: datetime
    status_at: datetime
    finished_at: datetime | None
    cancel_requested: bool
    error: Death | None = None
    result: Any = None
    status_url: str
    events_url: str


class Cancelled(Schema):
    """What the request to cancel came to: ``cancelled`` at once, or ``requested`` of the worker that runs it."""

    id: UUID
    status: str
    outcome: str
