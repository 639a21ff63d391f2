"""What is wrong with an answer, said so that the model can mend it: the field, what was expected, what is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from jsonschema import ValidationError

from tasks.llm.schema import additional_keys, json_path, validator_for
from tasks.llm.text import shortened

#: Problems named at most; the model mends the rest with them, or is asked again.
MAX_PROBLEMS = 20
#: Allowed values named at most; the schema, which the model has, names all.
MAX_ALLOWED = 50


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault. ``path`` is such as ``items[2].name``; ``allowed`` the allowed values where they can be listed."""

    path: str
    message: str
    expected: str
    allowed: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.words}"

    @property
    def words(self) -> str:
        """What is wrong, what was expected, what is allowed; without the path."""
        hints = [f"expected {self.expected}"] if self.expected else []
        if self.allowed is not None:
            more = len(self.allowed) - MAX_ALLOWED
            named = ", ".join(map(_json, self.allowed[:MAX_ALLOWED])) or "none"
            hints.append(f"allowed: {named}" + (f" and {more} more" if more > 0 else ""))
        return self.message + (f" ({'; '.join(hints)})" if hints else "")


def problems(value: Any, schema: dict[str, Any]) -> list[Problem]:
    """What the schema has against the value, in the order of the paths; empty: nothing."""
    try:
        errors = list(islice(validator_for(schema).iter_errors(value), MAX_PROBLEMS))
        found = [problem for error in errors for problem in _Explanation(schema).of(error)]
    except RecursionError:
        return [Problem("(top level)", "nested too deeply to be checked", describe(schema))]
    except OverflowError:
        # multipleOf with a fraction, of a whole number that no float holds.
        return [Problem("(top level)", "has a number that is too large to be checked", describe(schema))]
    return list(dict.fromkeys(sorted(found, key=lambda problem: problem.path)))[:MAX_PROBLEMS]


def repair_message(found: Iterable[Problem]) -> str:
    """What the model is told about its broken answer."""
    lines = [f"- {problem}" for problem in found]
    end = "Answer again with the whole corrected JSON value and nothing else: no prose, no code fence."
    return "\n".join(("Your answer could not be used:", *lines, end))


def describe(schema: Any) -> str:
    """A schema's demands on one value in a few words: ``integer, at least 1, at most 5``."""
    if not isinstance(schema, Mapping):
        return "no value" if schema is False else ""
    types = schema.get("type", [])
    words = [" or ".join([types] if isinstance(types, str) else types)]
    words += [text.format(_json(schema[key])) for key, text in _DEMANDS.items() if key in schema]
    if schema.get("required"):
        words.append(f"with {', '.join(schema['required'])}")
    return ", ".join(word for word in words if word)


_DEMANDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matching the pattern {}",
    "format": "in the format {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} fields",
    "maxProperties": "at most {} fields",
}


class _Explanation:
    """Turns the validator's errors into problems. Looks up the ``$ref``s of the schema that they came from."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root

    def of(self, error: ValidationError) -> Iterator[Problem]:
        """The problems behind one error: several for missing or unexpected fields and for alternatives."""
        special = {
            "required": self._missing,
            "additionalProperties": self._unexpected,
            "anyOf": self._alternatives,
            "oneOf": self._alternatives,
        }.get(str(error.validator))
        if special is not None:
            yield from special(error)
        else:
            yield self._problem(error.absolute_path, _sentence(error), error.schema)

    def _problem(self, path: Iterable[Any], message: str, schema: Any) -> Problem:
        schema = self._resolved(schema)
        return Problem(json_path(path), message, describe(schema), _allowed(schema))

    def _resolved(self, schema: Any) -> Any:
        """The schema that a reference into the same document (``#/$defs/Category``) stands for; others stay."""
        for _ in range(8):
            reference = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(reference, str) or not reference.startswith("#/"):
                break
            found: Any = self.root
            for part in reference[2:].split("/"):
                key = part.replace("~1", "/").replace("~0", "~")
                found = found.get(key) if isinstance(found, Mapping) else None
            schema = found
        return schema

    def _missing(self, error: ValidationError) -> Iterator[Problem]:
        """One problem for each missing field, at the field's own path and with what its own schema asks."""
        properties = _mapping(error.schema).get("properties", {})
        for name in _names(error.validator_value):
            if name not in _mapping(error.instance):
                yield self._problem([*error.absolute_path, name], "missing", properties.get(name))

    def _unexpected(self, error: ValidationError) -> Iterator[Problem]:
        schema = _mapping(error.schema)
        known = tuple(schema.get("properties", {}))
        for name in additional_keys(_mapping(error.instance), schema):
            path = json_path([*error.absolute_path, shortened(name, 80)])
            yield Problem(path, "no such field", "only the fields of the schema", known)

    def _alternatives(self, error: ValidationError) -> Iterator[Problem]:
        """The faults of the alternative that was meant, or, if none of them is near, what all of them expect."""
        branches: dict[Any, list[ValidationError]] = {}
        for inner in error.context or ():
            branches.setdefault(inner.schema_path[0], []).append(inner)
        if not branches:
            yield self._problem(error.absolute_path, "fits several alternatives; exactly one must fit", error.schema)
            return
        best = min(branches.values(), key=lambda faults: (_is_other(faults, error), len(faults)))
        if not _is_other(best, error):
            for inner in best:
                yield from self.of(inner)
            return
        schemas = [self._resolved(branch) for branch in _list(error.validator_value)]
        expected = " or ".join(filter(None, map(describe, schemas)))
        values = tuple(value for schema in schemas for value in _allowed(schema) or ())
        yield Problem(json_path(error.absolute_path), _sentence(error), expected, values or None)


def _is_other(faults: list[ValidationError], parent: ValidationError) -> bool:
    """Whether an alternative was not the one meant: wrong at its very top, or at a constant that names it."""
    depth = len(parent.absolute_path)
    return any(
        fault.validator == "const" or (len(fault.absolute_path) == depth and fault.validator in {"type", "enum"})
        for fault in faults
    )


def _sentence(error: ValidationError) -> str:
    """The validator's sentence; it quotes the value, which may be the whole answer."""
    return shortened(error.message)


def _allowed(schema: Any) -> tuple[Any, ...] | None:
    schema = _mapping(schema)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return tuple(map(_scalar, values)) if isinstance(values, list) else None


def _scalar(value: Any) -> Any:
    """Scalars as they are; objects and arrays as their JSON text, so that problems can be compared."""
    return value if isinstance(value, str | int | float | None) else _json(value)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(value: Any) -> list[str]:
    return [name for name in _list(value) if isinstance(name, str)]


def _json(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False))
