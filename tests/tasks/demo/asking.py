"""Asks the simulated provider through the real OpenAI client, streamed and whole, and waits without sleeping blind."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from openai import OpenAI
from openai.types import CompletionUsage

Found = TypeVar("Found")

SCHEMA = {
    "type": "object",
    "required": ["category", "urgency"],
    "additionalProperties": False,
    "properties": {
        "category": {"enum": ["billing", "outage", "how_to"]},
        "urgency": {"type": "integer", "minimum": 1, "maximum": 5},
    },
}


@dataclass(frozen=True)
class Answer:
    """What came back."""

    text: str
    finish: str | None
    usage: CompletionUsage | None
    model: str
    fingerprint: str | None
    chunks: int = 1


def new_task() -> str:
    """An id that no other test uses."""
    return uuid.uuid4().hex


def ask(
    base_url: str,
    task: str,
    *,
    stream: bool = True,
    schema: dict[str, Any] | None = None,
    content: str = "Where is invoice INV-7?",
    before: tuple[dict[str, str], ...] = (),
    headers: dict[str, str] | None = None,
    key: str = "sk-demo",
    **options: Any,
) -> Answer:
    """One call without SDK retries. Raises what the client raises."""
    if schema is not None:
        options["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema, "strict": True},
        }
    messages: Any = [{"role": "user", "content": f"{content} [task:{task}]"}, *before]
    with OpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=10) as client:
        if not stream:
            whole = client.chat.completions.create(
                model="simulated-small", messages=messages, extra_headers=headers, **options
            )
            choice = whole.choices[0]
            text = choice.message.content or ""
            return Answer(text, choice.finish_reason, whole.usage, whole.model, whole.system_fingerprint)
        chunks = list(
            client.chat.completions.create(
                model="simulated-small",
                messages=messages,
                stream=True,
                stream_options={"include_usage": True},
                extra_headers=headers,
                **options,
            )
        )
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    text = "".join(choice.delta.content or "" for choice in choices)
    finish = next((choice.finish_reason for choice in choices if choice.finish_reason), None)
    usage = next((chunk.usage for chunk in chunks if chunk.usage), None)
    return Answer(text, finish, usage, chunks[0].model, chunks[0].system_fingerprint, len(chunks))


def until(condition: Callable[[], Found], seconds: float = 10.0) -> Found:
    """The condition's value once it is true. Fails after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "It did not come true in time."
        time.sleep(0.02)
    return value
