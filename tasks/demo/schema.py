"""Makes a JSON value that fits a JSON Schema, and one that does not. Pure: the same seed gives the same value.

Covers what answers of models are asked for: type, enum, const, bounds, lengths, formats, items, properties, required,
anyOf, oneOf, allOf and local references. What the drawing does not steer by (not, if, pattern …) is left to the last
check: every value is validated before it is given out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable

from tasks.demo.draw import draw_number, draw_string, merge

TRIES = 60
MAX_DEPTH = 12
#: Below this depth optional parts are left out, so that recursive schemas come to an end.
SLIM_DEPTH = 5
TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")

#: Proposes a value for a property by its name; it is used where it fits. Returning None proposes nothing.
Suggest = Callable[[str, Mapping[str, Any]], Any]


class Unsatisfiable(Exception):
    """No value was found: the schema is no schema, allows nothing, or asks for more than this generator draws."""


def generate(schema: Any, random: Random, suggest: Suggest | None = None) -> Any:
    """A JSON value valid against ``schema``. Raises Unsatisfiable."""
    drawer = _Drawer(schema, random, suggest)
    for _ in range(TRIES):
        try:
            value = drawer.draw(schema)
        except Unsatisfiable:
            continue
        if drawer.fits(value, schema):
            return value
    raise Unsatisfiable("No value was found that fits the schema.")


def spoil(value: Any, schema: Any, random: Random) -> Any:
    """``value``, changed so that it breaks ``schema`` the way models do. Raises Unsatisfiable when all values fit."""
    drawer = _Drawer(schema, random, None)
    candidates = [*_spoilt(value, schema), "none of the above", None, [], 12345]
    for candidate in candidates:
        if not drawer.fits(candidate, schema):
            return candidate
    raise Unsatisfiable("The schema allows every value.")


def _spoilt(value: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    for name in value:
        if isinstance(properties.get(name), dict) and "enum" in properties[name]:
            yield {**value, name: "other (see text)"}
    for name in value:
        yield {key: kept for key, kept in value.items() if key != name}
    for name in value:
        yield {**value, name: {"value": value[name]}}


class _Drawer:
    """Draws candidates from one root schema."""

    def __init__(self, schema: Any, random: Random, suggest: Suggest | None) -> None:
        self._root = schema
        self._random = random
        self._suggest = suggest
        if not isinstance(schema, dict | bool):
            raise Unsatisfiable("A JSON Schema is an object, true or false.")
        kind = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(cast("dict[str, Any]", schema))  # Typed for objects; a boolean is checked as well.
        except SchemaError as error:
            raise Unsatisfiable(f"This is no JSON Schema: {error.message}") from error
        self._validator: Validator = kind(schema)

    def fits(self, value: Any, schema: Any) -> bool:
        """Whether ``value`` is valid against ``schema``, a part of the root."""
        try:
            return self._validator.evolve(schema=schema).is_valid(value)
        except (Unresolvable, re.error, RecursionError) as error:
            raise Unsatisfiable(f"The schema cannot be followed: {error}") from error

    def draw(self, schema: Any, name: str = "", depth: int = 0) -> Any:
        """A candidate for ``schema``, the value of property ``name``."""
        if schema is False or depth > MAX_DEPTH:
            raise Unsatisfiable("Nothing fits here.")
        if not isinstance(schema, dict):
            schema = {}
        if self._suggest is not None and name:
            proposed = self._suggest(name, schema)
            if proposed is not None and self.fits(proposed, schema):
                return proposed
        return self._draw_object_schema(schema, name, depth)

    def _draw_object_schema(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        if "$ref" in schema:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            return self.draw(merge(rest, self._resolve(schema["$ref"])), name, depth + 1)
        if "allOf" in schema:
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            for part in schema["allOf"]:
                rest = merge(rest, self._followed(part))
            return self.draw(rest, name, depth + 1)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._draw_choice(schema, word, name, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._draw_enum(schema)
        return self._draw_typed(schema, name, depth)

    def _followed(self, part: Any) -> Any:
        for _ in range(MAX_DEPTH):
            if not isinstance(part, dict) or "$ref" not in part:
                return part
            rest = {key: value for key, value in part.items() if key != "$ref"}
            part = merge(rest, self._resolve(part["$ref"]))
        raise Unsatisfiable("References go round in a circle.")

    def _resolve(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise Unsatisfiable(f"Only references within the schema are followed, not {reference!r}.")
        here = self._root
        for word in reference[1:].split("/")[1:]:
            word = word.replace("~1", "/").replace("~0", "~")
            try:
                here = here[int(word)] if isinstance(here, list) else here[word]
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise Unsatisfiable(f"The reference {reference!r} leads nowhere.") from error
        return here

    def _draw_choice(self, schema: dict[str, Any], word: str, name: str, depth: int) -> Any:
        rest = {key: value for key, value in schema.items() if key != word}
        options = list(schema[word])
        self._random.shuffle(options)
        for option in options:
            try:
                candidate = self.draw(merge(rest, self._followed(option)), name, depth + 1)
            except Unsatisfiable:
                continue
            if self.fits(candidate, schema):
                return candidate
        raise Unsatisfiable(f"No branch of {word} gave a value.")

    def _draw_enum(self, schema: dict[str, Any]) -> Any:
        allowed = [value for value in schema["enum"] if self.fits(value, schema)]
        if not allowed:
            raise Unsatisfiable("No value of the enum fits the rest of the schema.")
        return self._random.choice(allowed)

    def _draw_typed(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        kind = self._type_of(schema)
        if kind == "object":
            return self._draw_object(schema, depth)
        if kind == "array":
            return self._draw_array(schema, name, depth)
        if kind == "string":
            return self._draw_text(schema)
        if kind in {"integer", "number"}:
            number = draw_number(schema, self._random, whole=kind == "integer")
            if number is None:
                raise Unsatisfiable("No number lies within the bounds.")
            return number
        return None if kind == "null" else self._random.random() < 0.5

    def _type_of(self, schema: dict[str, Any]) -> str:
        named = schema.get("type")
        if isinstance(named, list):
            if not named:
                raise Unsatisfiable("No type is left.")
            solid = [kind for kind in named if kind != "null"]
            return str(self._random.choice(solid)) if solid and self._random.random() < 0.85 else str(named[-1])
        return str(named) if named else _implied_type(schema)

    def _draw_text(self, schema: dict[str, Any]) -> str:
        text = draw_string(schema, self._random)
        if text is None or ("pattern" in schema and not re.search(schema["pattern"], text)):
            raise Unsatisfiable("No text was found that fits.")
        return text

    def _draw_array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        first = schema.get("prefixItems", [])
        if isinstance(schema.get("items"), list):  # Draft 7 and older
            first, rest = schema["items"], schema.get("additionalItems", True)
        else:
            rest = schema.get("items", True)
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", max(least, len(first)) + 3)
        wanted = least if depth > SLIM_DEPTH else self._random.randint(least, max(least, min(most, least + 3)))
        items: list[Any] = []
        if "contains" in schema:
            wanted = max(wanted, 1)
        for _ in range(wanted * 8):
            if len(items) == wanted:
                break
            position = len(items)
            part = first[position] if position < len(first) else rest
            if "contains" in schema and not items and not first:
                part = merge(self._followed(rest), self._followed(schema["contains"]))
            item = self.draw(part, name, depth + 1)
            if not schema.get("uniqueItems") or item not in items:
                items.append(item)
        return items

    def _draw_object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        required = schema.get("required", [])
        value = {name: self.draw(properties.get(name, more), name, depth + 1) for name in required}
        for name in self._optional(schema, depth):
            try:
                value[name] = self.draw(properties[name], name, depth + 1)
            except Unsatisfiable:
                continue  # It may be left out.
        for number in range(schema.get("minProperties", 0) - len(value)):
            value[f"field_{number + 1}"] = self.draw(more, "", depth + 1)
        # In the order of the schema, as models give it.
        order = {name: place for place, name in enumerate(properties)}
        return dict(sorted(value.items(), key=lambda item: order.get(item[0], len(order))))

    def _optional(self, schema: dict[str, Any], depth: int) -> list[str]:
        required = set(schema.get("required", []))
        names = [name for name in schema.get("properties", {}) if name not in required]
        room = schema.get("maxProperties", len(required) + len(names)) - len(required)
        least = schema.get("minProperties", 0) - len(required)
        share = 0.0 if depth > SLIM_DEPTH else 0.8
        chosen = [name for name in names if self._random.random() < share]
        chosen += [name for name in names if name not in chosen][: max(0, least - len(chosen))]
        return chosen[: max(0, room)]


def _implied_type(schema: Mapping[str, Any]) -> str:
    words = {
        "object": ("properties", "required", "additionalProperties", "minProperties"),
        "array": ("items", "prefixItems", "minItems", "maxItems", "contains"),
        "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
    return next((kind for kind, keys in words.items() if any(key in schema for key in keys)), "string")


def is_schema(value: Any) -> bool:
    """Whether a JSON value found in a prompt is meant as the schema of an answer."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    typed = kind in TYPES or (isinstance(kind, list) and bool(kind) and all(one in TYPES for one in kind))
    return "$schema" in value or (typed and any(word in value for word in ("properties", "items", "enum", "anyOf")))


def find_schema(text: str) -> dict[str, Any] | None:
    """The JSON Schema written out in a text: the object after the words "JSON Schema", else what looks like one."""
    named = re.search(r"JSON Schema", text, re.IGNORECASE)
    if named:
        first = next(_objects(text[named.end() :]), None)
        if first is not None:
            return first
    return next((value for value in _objects(text) if is_schema(value)), None)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text. Looks at the first 200 braces only."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(200):
        if start < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield value
        start = text.find("{", end)
