"""JSON Schema of answers: checked when it is configured, applied to every answer. Draft 2020-12, formats not checked.

Patterns run on RE2, so that no pattern written by an operator can stall the event loop on an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import re2
from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # ships no types
from referencing import Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from tasks.llm.meter import STEP_CHARACTERS, spend
from tasks.llm.text import deeper_than, shortened

DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: Characters of a schema, which is part of every call, and levels of objects and lists in it: each takes Python frames
#: whenever an answer is checked.
MAX_SOURCE, MAX_DEPTH = 256 * 1024, 100
_UNICODE_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u([0-9A-Fa-f]{4})")


def check_schema(text: str) -> dict[str, Any]:
    """Parse and check the JSON text of an answer's schema.

    Raises ValueError with one sentence that says where and why: no JSON, no object, another draft, against the meta
    schema, a pattern that RE2 cannot run, a $ref that leads nowhere.
    """
    try:
        schema = json.loads(text)
    except RecursionError as error:
        raise ValueError("the schema is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"the schema is no JSON: {error}") from error
    if not isinstance(schema, dict):
        raise ValueError("the schema must be a JSON object")
    if len(text) > MAX_SOURCE:
        raise ValueError(f"the schema has {len(text)} characters; at most {MAX_SOURCE} are taken")
    if deeper_than(MAX_DEPTH, schema):
        raise ValueError(f"the schema is nested too deeply: at most {MAX_DEPTH} levels of JSON are taken")
    if str(schema.get("$schema", DIALECT)).rstrip("#") != DIALECT:
        raise ValueError(f"answers are checked by Draft 2020-12; remove $schema or set it to {DIALECT}")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        message = shortened(error.message)
        raise ValueError(f"the schema is wrong at {json_path(error.absolute_path)}: {message}") from error
    _check_parts(schema)
    return schema


def validator_for(schema: dict[str, Any]) -> Validator:
    """The validator of a schema, made once per schema and process."""
    return _validator(json.dumps(schema))


@lru_cache(maxsize=256)
def _validator(text: str) -> Validator:
    # With a registry of its own the validator never fetches a $ref from the network.
    validator: Validator = _Validator(json.loads(text), registry=REGISTRY)
    return validator


def json_path(path: Any) -> str:
    """``items[2].name`` for a sequence of keys and positions; ``(top level)`` for none."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "(top level)"


def _check_parts(schema: dict[str, Any]) -> None:
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    registry = REGISTRY.with_resource("", resource)
    waiting = [(resource, registry.resolver_with_root(resource))]
    while waiting:
        part, resolver = waiting.pop()
        if isinstance(part.contents, dict):
            _check_patterns(part.contents)
            _check_references(part.contents, resolver)
        waiting.extend((sub, resolver.in_subresource(sub)) for sub in part.subresources())


def _check_patterns(schema: dict[str, Any]) -> None:
    patterns = [schema["pattern"]] if "pattern" in schema else []
    for pattern in (*patterns, *schema.get("patternProperties", {})):
        try:
            _compiled(pattern)
        except re2.error as error:
            raise ValueError(f"the pattern {pattern!r} cannot be used: {error} (patterns run on RE2)") from error


def _check_references(schema: dict[str, Any], resolver: Any) -> None:
    for keyword in ("$ref", "$dynamicRef"):
        reference = schema.get(keyword)
        try:
            if reference is not None:
                resolver.lookup(reference)
        except Unresolvable as error:
            raise ValueError(
                f"the {keyword} {reference!r} leads nowhere (references stay inside the schema)"
            ) from error


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    r"""The pattern for RE2, which writes \x{4e00} where JSON Schema has \u4e00."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(_UNICODE_ESCAPE.sub(r"\1\\x{\2}", pattern), options)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not _compiled(pattern).search(instance):
        yield ValidationError(f"{instance!r} does not match the pattern {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in patterns.items():
        for key, value in instance.items():
            spend(characters=len(key) + STEP_CHARACTERS)
            if _compiled(pattern).search(key):
                yield from validator.descend(value, subschema, path=key, schema_path=pattern)


def additional_keys(instance: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """The keys that neither ``properties`` nor ``patternProperties`` of the schema speaks of."""
    known = schema.get("properties", {})
    patterns = [_compiled(pattern) for pattern in schema.get("patternProperties", {})]
    spend(len(instance) * (1 + len(patterns)))
    return [key for key in instance if key not in known and not any(pattern.search(key) for pattern in patterns)]


def _additional_properties(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    keys = additional_keys(instance, schema)
    if subschema is False and keys:
        yield ValidationError(f"unexpected: {', '.join(keys)}")
    elif subschema is not False:
        for key in keys:
            yield from validator.descend(instance[key], subschema, path=key)


def _unique_items(validator: Any, wanted: bool, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """By what the items are in one canonical text; comparing each with each takes hours for a long list."""
    if not wanted or not validator.is_type(instance, "array"):
        return
    seen: dict[str, int] = {}
    for position, item in enumerate(instance):
        text = _canonical(item)
        spend(characters=len(text))
        if (first := seen.setdefault(text, position)) != position:
            yield ValidationError(f"the items must differ from each other; {position} is the same as {first}")
            return


def _canonical(item: Any) -> str:
    return json.dumps(_plain(item), sort_keys=True)


def _plain(value: Any) -> Any:
    """The value with 1.0 as 1, which JSON Schema holds for equal; true is not 1 in JSON's own text."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


#: What a fault costs at each level that it passes: alternatives keep all of theirs, about a kilobyte each.
ERROR_STEPS = 60
Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


def _counted(keyword: Keyword) -> Keyword:
    """A keyword of the validator that counts its work, and keeps of each fault's sentence what people can read.

    The sentence quotes the value, which may be the whole answer, at each level and in each alternative anew.
    """

    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        spend()
        for error in keyword(validator, value, instance, schema) or ():
            spend(ERROR_STEPS, characters=len(error.message))
            error.message = shortened(error.message)
            yield error

    return counted


_KEYWORDS: dict[str, Keyword] = {
    **Draft202012Validator.VALIDATORS,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
_Validator = extend(  # type: ignore[no-untyped-call]  # its stub leaves the signature out
    Draft202012Validator, {name: _counted(keyword) for name, keyword in _KEYWORDS.items()}
)
