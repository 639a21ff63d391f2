"""What a call is asked with and what is recorded of it. Plain values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypedDict

Role = Literal["system", "user", "assistant"]


class Message(TypedDict):
    """One turn of the conversation, as the provider gets it and as the trail keeps it."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """An OpenAI-compatible endpoint. The key itself is never in here, only the variable that holds it."""

    name: str
    base_url: str
    #: Name of the environment variable with the key (or, with _FILE appended, with its path); empty: no key needed.
    api_key_env: str = ""


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """One version of a kind's prompt, with the model and the limits it runs with."""

    model: str
    #: Django templates over the payload; an empty system prompt sends no system message of its own.
    system_prompt: str
    prompt: str
    #: JSON Schema of the answer; None: the answer is text.
    output_schema: dict[str, Any] | None = None
    stream: bool = True
    temperature: float | None = None
    max_output_tokens: int | None = None
    #: How often one attempt may send a broken answer back to the model.
    max_repairs: int = 2
    version: int | None = None


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One HTTP call as the trail keeps it, whatever came of it. Unknown counts are None, never a guess."""

    #: From 1, within the attempt.
    seq: int
    provider: str
    #: The model that answered, as the provider names it; the requested one where it did not say.
    model: str
    messages: list[Message]
    #: All text that came, also where the call broke off.
    answer: str
    finish_reason: str | None
    tool_calls: list[dict[str, Any]]
    input_tokens: int | None
    output_tokens: int | None
    #: US dollars; None where tokens or price are unknown.
    cost: Decimal | None
    provider_request_id: str | None
    #: On this machine's monotonic clock.
    started: float
    duration_ms: int
    #: None where no response arrived.
    http_status: int | None
    #: Class name of what ended the call; None: the answer was good.
    error: str | None
    #: What local mending did to the answer, one phrase each.
    mended: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Result:
    """What an attempt came to: parsed JSON where there is a schema, else the text."""

    value: Any
    #: How often the model was asked to correct itself.
    repairs: int = 0
    mended: list[str] = field(default_factory=list)
