"""The configuration that the worker runs by, read from the database into plain values."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from tasks.lifecycle import Claimed, claim_batch
from tasks.llm.request import PromptSpec, ProviderConfig
from tasks.models import PromptVersion, Provider
from tasks.retry import RetryPolicy


@dataclass(frozen=True, slots=True)
class KindSnapshot:
    """The settings of a kind as they stood when its tasks were claimed."""

    name: str
    policy: RetryPolicy
    timeout_seconds: float
    stall_seconds: float | None
    model: str
    settings: Mapping[str, Any]


class Job(NamedTuple):
    """One claimed task with all that it runs by. ``spec`` is that of a prompt kind, None for a handler."""

    claimed: Claimed
    kind: KindSnapshot
    spec: PromptSpec | None
    provider: ProviderConfig | None
    simulated: bool
    #: When the answer to its claim came, on this machine's monotonic clock.
    received: float

    def database_time(self, moment: float) -> float:
        """A moment of the monotonic clock on the database's, in epoch seconds: this machine's may be wrong."""
        return self.claimed.claimed_at + moment - self.received


@dataclass(frozen=True, slots=True)
class NamedProvider:
    """A provider that a handler asks for by its name, as it stands at this moment.

    ``resting``: why nothing may be sent to it now, empty where it may. ``limited``: whether a place must be taken.
    """

    config: ProviderConfig
    simulated: bool
    resting: str
    limited: bool


def read_provider(name: str) -> NamedProvider | None:
    """The provider of that name; None where there is none."""
    rest = ExpressionWrapper(F("cooling_until") - Now(), output_field=DurationField())
    row = Provider.objects.annotate(rest=rest).filter(pk=name).first()
    if row is None:
        return None
    config = ProviderConfig(row.name, row.base_url, row.api_key_env)
    limits = (row.max_concurrency, row.requests_per_minute, row.tokens_per_minute)
    return NamedProvider(config, row.simulated, _resting(row, row.rest), any(limits))


def _resting(row: Provider, rest: timedelta | None) -> str:
    if row.held_at:
        return f"the provider {row.name!r} is on hold{f' ({row.hold_code})' if row.hold_code else ''}"
    seconds = rest.total_seconds() if rest else 0.0
    return f"the provider {row.name!r} rests; try again in {seconds:.1f}s" if seconds > 0 else ""


class Versions:
    """Prompt versions by id. They never change, so each is read once."""

    def __init__(self) -> None:
        self._known: dict[int, PromptVersion] = {}

    def get(self, ids: Collection[int]) -> dict[int, PromptVersion]:
        """The versions of these ids; at most one query, for those not seen before."""
        missing = set(ids) - self._known.keys()
        if missing:
            self._known.update(PromptVersion.objects.in_bulk(missing))
        return {key: self._known[key] for key in ids}


@dataclass(frozen=True, slots=True)
class Jobs:
    """What a claim gave to run; ``limited``, ``busy`` and ``counted`` as ``lifecycle.Taken`` has them."""

    jobs: list[Job]
    limited: bool = False
    busy: bool = False
    counted: bool = False


def claim_jobs(
    worker_id: int, count: int, handlers: Collection[str], versions: Versions, *, count_first: bool = False
) -> Jobs:
    """Claim tasks with what they run by; one more read, if at all, for prompts not seen before, which never change."""
    taken = claim_batch(worker_id, count, sorted(handlers), count_first=count_first)
    received = time.monotonic()
    prompts = versions.get({row.prompt_version_id for row in taken.tasks if row.prompt_version_id})
    # One for each kind that was claimed: its tasks share it.
    parts = {row.kind: _parts(row, prompts) for row in taken.tasks}
    jobs = [Job(row, *parts[row.kind], received) for row in taken.tasks]
    return Jobs(jobs, taken.limited, taken.busy, taken.counted)


def _parts(
    row: Claimed, prompts: Mapping[int, PromptVersion]
) -> tuple[KindSnapshot, PromptSpec | None, ProviderConfig | None, bool]:
    kind, endpoint = _snapshot(row), row.setup.endpoint
    provider = (
        ProviderConfig(row.provider, endpoint.base_url, endpoint.api_key_env) if row.provider and endpoint else None
    )
    version = prompts[row.prompt_version_id] if row.prompt_version_id else None
    return kind, _spec(version, kind) if version else None, provider, bool(endpoint and endpoint.simulated)


def _snapshot(row: Claimed) -> KindSnapshot:
    kind = row.setup.settings
    policy = RetryPolicy(
        max_attempts=kind.max_attempts,
        initial_interval_seconds=kind.initial_interval_seconds,
        backoff_coefficient=kind.backoff_coefficient,
        maximum_interval_seconds=kind.maximum_interval_seconds,
        jitter=kind.jitter,
        deadline_seconds=kind.deadline_seconds,
    )
    names = ("stream", "temperature", "max_output_tokens", "max_repairs")
    settings = {name: getattr(kind, name) for name in names}
    return KindSnapshot(row.kind, policy, kind.timeout_seconds, kind.stall_seconds, kind.model, settings)


def _spec(version: PromptVersion, kind: KindSnapshot) -> PromptSpec:
    return PromptSpec(
        model=version.model,
        system_prompt=version.system_prompt,
        prompt=version.prompt,
        output_schema=version.output_schema,
        version=version.number,
        **kind.settings,
    )
