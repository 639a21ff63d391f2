"""What handlers say of the payloads that they take: one JSON Schema a handler, as this process knows them.

Asked where a task is submitted, whatever the door, and again before the handler runs, as the process that submitted the
task may not have known its handler. The check is bounded as that of an answer is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tasks.llm.meter import FULL, Exhausted, in_thread, metered, off_loop
from tasks.llm.payload import is_large
from tasks.llm.text import shortened

if TYPE_CHECKING:
    from tasks.llm.problems import Problem

#: Faults of one payload that its sentence names, and what stands for the field where it is all of the payload.
NAMED, TOP = 5, "(top level)"
#: Characters of what is said of one fault.
LONGEST = 600


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a payload does not fit: a sentence, and (field, what is wrong with it) for each fault that it names."""

    sentence: str
    fields: tuple[tuple[str, str], ...] = ()


_schemas: dict[str, dict[str, Any]] = {}


def declare(handler: str, schema: dict[str, Any] | None) -> None:
    """Say what the handler takes; None: any payload. Raises ValueError with a sentence for a schema that is none."""
    _schemas.pop(handler, None)
    if schema is None:
        return
    # Here, so that processes whose handlers have no schema need not load the validator.
    from tasks.llm.schema import check_schema

    try:
        _schemas[handler] = check_schema(json.dumps(schema))
    except (TypeError, ValueError) as error:
        raise ValueError(f"The payload_schema of the handler {handler!r} cannot be used: {error}.") from error


def misfit(handler: str, payload: Any) -> Misfit | None:
    """What the handler's schema has against the payload; None: nothing, or this process has no schema.

    ``payload``: what can be stored as JSON; it is checked as it will be read from there (a tuple is an array).
    """
    schema = _schemas.get(handler)
    if schema is None:
        return None
    try:
        with metered(*FULL):
            return _told(handler, _problems(json.loads(json.dumps(payload)), schema))
    except Exhausted:
        return _too_much(handler)


async def misfit_beside_others(handler: str, payload: Any) -> Misfit | None:
    """The same in an event loop: what takes long is done in a thread."""
    schema = _schemas.get(handler)
    if schema is None:
        return None
    try:
        found = await (in_thread if is_large(payload) else off_loop)(_problems, payload, schema)
    except Exhausted:
        return _too_much(handler)
    return _told(handler, found)


def _problems(payload: Any, schema: dict[str, Any]) -> list[Problem]:
    from tasks.llm.problems import problems

    return problems(payload, schema)


def _told(handler: str, found: Sequence[Problem]) -> Misfit | None:
    if not found:
        return None
    more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
    fields = tuple((shortened(problem.path), shortened(problem.words, LONGEST)) for problem in found[:NAMED])
    named = "; ".join(f"{field}: {words}" for field, words in fields)
    return Misfit(f"The payload does not fit the schema of the handler {handler!r}: {named}{more}", fields)


def _too_much(handler: str) -> Misfit:
    return Misfit(
        f"The schema of the handler {handler!r} takes more than {FULL[0]} steps to check this payload; send less, or"
        " give the schema fewer alternatives (anyOf, oneOf, $ref) within each other."
    )
