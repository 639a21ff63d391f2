"""What a worker needs of a task that it has claimed, and how the claim's row tells it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple
from uuid import UUID


@dataclass(frozen=True, slots=True)
class KindSettings:
    """The columns of a kind that its tasks run by, as they stood at the claim."""

    handler: str
    max_attempts: int
    initial_interval_seconds: float
    backoff_coefficient: float
    maximum_interval_seconds: float
    jitter: float
    deadline_seconds: float
    timeout_seconds: float
    stall_seconds: float | None
    stream: bool
    temperature: float | None
    max_output_tokens: int | None
    max_repairs: int
    model: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the provider is, as it stood at the claim."""

    base_url: str
    api_key_env: str
    simulated: bool


@dataclass(frozen=True, slots=True)
class Setup:
    """What the tasks of one kind run by, as it stood at the claim. ``endpoint``: None without a provider."""

    settings: KindSettings
    endpoint: Endpoint | None


# As JSON objects: the arguments of json_build_object, where the kind is ``k`` and its provider ``p``.
KIND_COLUMNS = ", ".join(f"'{field.name}', k.{field.name}" for field in fields(KindSettings))
ENDPOINT_COLUMNS = ", ".join(f"'{field.name}', p.{field.name}" for field in fields(Endpoint))


class Claimed(NamedTuple):
    """What a worker needs of a task that it has just claimed. ``payload_text`` is JSON; its reader parses it.

    ``prompt_version_id`` and ``setup`` are those of one moment, the claim's: they may be changed a moment later. Tasks
    of one kind and claim share one ``setup``.
    """

    task_id: UUID
    attempt_id: int
    kind: str
    cycle: int
    payload_text: str
    failures: int
    snoozes: int
    elapsed_seconds: float
    provider: str | None
    prompt_version_id: int | None
    session_id: str
    user_id: str
    trace_id: str
    tags: list[str]
    #: By the database's clock, in epoch seconds.
    claimed_at: float
    setup: Setup

    @property
    def handler(self) -> str:
        """The name of the kind's handler; empty for a prompt kind."""
        return self.setup.settings.handler


FLOATS = {field.name for field in fields(KindSettings) if "float" in str(field.type)}


def setup_of(settings: dict[str, Any], endpoint: dict[str, Any] | None) -> Setup:
    """From the JSON objects of ``KIND_COLUMNS`` and ``ENDPOINT_COLUMNS``. JSON does not tell 30.0 from 30."""
    floats = {name: float(settings[name]) for name in FLOATS if settings[name] is not None}
    return Setup(KindSettings(**(settings | floats)), Endpoint(**endpoint) if endpoint else None)
