"""Which tables and keys a configuration file has. A key is a field of the same name of the table's model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import models

from tasks.models import ErrorCode, ErrorRule, Kind, Provider


@dataclass(frozen=True)
class Table:
    """One table: ``name`` as in the file, ``title`` for people, ``identity`` the key that names a row, or ``""``.

    ``nothing`` is the word for no value, which TOML lacks, in tables where a key that is left out may have one.
    """

    name: str
    title: str
    model: type[models.Model]
    identity: str
    keys: tuple[str, ...]
    nothing: str = ""

    def field(self, key: str) -> models.Field[Any, Any]:
        """The model's field of a key."""
        return self.model._meta.get_field(key)  # type: ignore[return-value]

    def nothing_for(self, key: str) -> str:
        """The word that means no value for this key, or an empty text."""
        return self.nothing if self.field(key).null else ""


PROVIDER = Table(
    "provider",
    "provider",
    Provider,
    "name",
    ("name", "base_url", "api_key_env", "requests_per_minute", "tokens_per_minute", "max_concurrency"),
)
KIND = Table(
    "kind",
    "kind",
    Kind,
    "name",
    (
        *("name", "handler", "provider", "model", "backup_provider", "backup_model"),
        *("system_prompt", "prompt", "output_schema", "stream", "temperature", "max_output_tokens", "max_repairs"),
        *("max_attempts", "initial_interval_seconds", "backoff_coefficient", "maximum_interval_seconds", "jitter"),
        *("timeout_seconds", "stall_seconds", "deadline_seconds", "priority", "concurrency_limit"),
        *("safe_to_rerun", "subject", "fallback_result"),
    ),
)
CODE = Table(
    "error_code",
    "error code",
    ErrorCode,
    "code",
    (
        *(
            "code",
            "title",
            "level",
            "cause",
            "retryable",
            "uses_budget",
            "cools_provider",
            "holds_provider",
            "max_attempts",
        ),
        *("initial_interval_seconds", "backoff_coefficient", "maximum_interval_seconds"),
        *("action", "user_message", "runbook", "next_step"),
    ),
    # A built-in code that is left out has its built-in number; this is how a file says that the kind's holds.
    nothing="kind",
)
RULE = Table(
    "rule",
    "rule",
    ErrorRule,
    "",
    ("code", "enabled", "exception", "cause", "http_status", "message", "body", "provider", "kind", "note"),
)
TABLES = {table.name: table for table in (PROVIDER, KIND, CODE, RULE)}

#: Keys that are stored but that the engine does not act on yet.
NOT_YET_ENFORCED = {
    "kind": ("backup_provider", "backup_model", "fallback_result"),
}
