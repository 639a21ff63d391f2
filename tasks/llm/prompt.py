"""Prompts: Django templates over a task's payload, strict about names.

What a template sees: the keys of the payload, where it is an object, and the whole payload as ``payload``. Objects and
arrays print as JSON, and ``|json`` prints any value as JSON. Nothing is escaped or localised, and nothing is loaded:
the tags include, extends, block, load, url and their like do not exist.

A name that the payload does not have is an error and not a blank, since a prompt with a hole in it costs money and
gives a wrong answer that looks right. A template says that a value may be absent in one of two ways: it tests it (``{%
if customer.tier %}``), or its first filter is ``default`` or ``default_if_none``. A null in the payload is a value.
"""

from __future__ import annotations

import json
from typing import Any

from django.template import TemplateSyntaxError

from tasks.errors import ConfigurationFault, InputInvalid
from tasks.llm.payload import JsonObject, readable
from tasks.llm.request import Message, PromptSpec
from tasks.llm.schema import check_schema
from tasks.llm.template import MAX_TEXT, Missing, PromptContext, TooLong, compiled
from tasks.llm.text import whole

__all__ = ["check_schema", "check_template", "composed", "render"]

SCHEMA_REQUEST = (
    "Answer with one JSON value and nothing else: no prose, no code fence. It must fit this JSON Schema:\n{schema}"
)


def render(spec: PromptSpec, payload: Any) -> list[Message]:
    """The messages of a call: the system prompt with the answer's schema, then the prompt.

    Raises ConfigurationFault for a template that cannot run, or InputInvalid when the payload lacks what it names.
    """
    values = _context(payload)
    system = _rendered(spec.system_prompt, values, "system prompt") if spec.system_prompt.strip() else ""
    prompt = _rendered(spec.prompt, values, "prompt")
    if not prompt.strip():
        raise InputInvalid("the prompt is empty once it is filled in")
    return composed(system, spec.output_schema, [{"role": "user", "content": prompt}])


def composed(system: str, schema: dict[str, Any] | None, turns: list[Message]) -> list[Message]:
    """The messages of a call: one of the system, with what is asked of the answer, where there is either; the turns."""
    parts = [system] if system.strip() else []
    if schema is not None:
        parts.append(SCHEMA_REQUEST.format(schema=json.dumps(schema, ensure_ascii=False)))
    first: list[Message] = [{"role": "system", "content": "\n\n".join(parts)}] if parts else []
    return [*first, *turns]


def check_template(text: str) -> None:
    """Raise ValueError with the line and the reason if the text is no usable template."""
    try:
        compiled(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except TemplateSyntaxError as error:
        token = getattr(error, "token", None)
        raise ValueError(f"line {token.lineno}: {error}" if token else str(error)) from error


def _rendered(text: str, values: dict[str, Any], what: str) -> str:
    try:
        template = compiled(text)
    except TemplateSyntaxError as error:
        raise ConfigurationFault(f"the {what} is no usable template: {error}") from error
    try:
        # Halves of surrogate pairs cannot be sent as UTF-8.
        return whole(template.render(PromptContext(values)))
    except TooLong:
        raise InputInvalid(f"the {what} comes to more than {MAX_TEXT} characters once it is filled in") from None
    except Missing as error:
        raise InputInvalid(f"the {what} names {error}, which the payload does not have") from None
    except Exception as error:
        # A filter or tag that cannot work on this value; which value decides, so the payload is at fault.
        raise InputInvalid(f"the {what} cannot be filled in: {type(error).__name__}: {error}") from error


def _context(payload: Any) -> dict[str, Any]:
    top = dict(JsonObject(payload)) if isinstance(payload, dict) else {}
    return {**top, "payload": readable(payload)}
