"""Making values storable: PostgreSQL's jsonb and text refuse NUL, lone surrogates, NaN and infinities."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from tasks.errors.text import as_text

MAX_PAYLOAD_BYTES = 1024 * 1024
MAX_RESULT_BYTES = 4 * 1024 * 1024
#: Levels of lists and objects in each other: half of what Python's own recursion bears, so that whoever handles a
#: stored value (our pages, a handler, its libraries) has room for frames of their own.
MAX_DEPTH = 500
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
#: ``json.dumps`` would make one for each value.
ENCODER = json.JSONEncoder(ensure_ascii=False)


class Unstorable(ValueError):
    """A value that cannot be kept, with a sentence that says why."""


def clean_text(text: str) -> str:
    """``text`` with each NUL and lone surrogate replaced by U+FFFD; two halves of one character are joined."""
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean(value: Any) -> Any:
    """``value`` as JSON that jsonb takes: text cleaned, NaN and infinities null, unknown types as their text."""
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_key(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [clean(item) for item in value]
    return clean_text(str(value))


def _key(key: Any) -> str:
    """A key as JSON writes it: ``true`` and ``null``, not ``True`` and ``None``."""
    return json.dumps(key) if key is None or isinstance(key, bool) else clean_text(str(key))


def storable_result(value: Any) -> str:
    """The JSON text of a handler's result, cleaned. Raises Unstorable when it is too large or too deep to keep.

    Also where it cannot be written at all: a number of too many digits, an object that cannot be shown as text.
    """
    if value is None:
        return "null"
    try:
        cleaned = clean(value)
        text = ENCODER.encode(cleaned)
    except RecursionError as error:
        raise Unstorable(_("The result is nested too deeply to be stored.")) from error
    except Exception as error:
        raise Unstorable(_("The result cannot be stored: %(error)s") % {"error": as_text(error)}) from error
    size = len(text.encode())
    if size > MAX_RESULT_BYTES:
        raise Unstorable(
            _("The result has %(size)d bytes; at most %(limit)d can be stored.")
            % {"size": size, "limit": MAX_RESULT_BYTES}
        )
    if _deeper_than(MAX_DEPTH, cleaned):
        raise Unstorable(
            _("The result is nested too deeply to be stored: at most %(limit)d levels are.") % {"limit": MAX_DEPTH}
        )
    return text


def checked_payload(value: Any) -> Any:
    """``value`` itself, if it is JSON that can be stored unchanged.

    Raises Unstorable: a payload is the caller's work and is refused rather than altered.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except RecursionError as error:
        raise _too_deep() from error
    except UnicodeEncodeError as error:
        raise Unstorable(_("The payload holds a lone surrogate (half a character), which cannot be stored.")) from error
    except (TypeError, ValueError) as error:
        raise Unstorable(_("The payload is not JSON: %(error)s") % {"error": error}) from error
    if size > MAX_PAYLOAD_BYTES:
        raise Unstorable(
            _("The payload has %(size)d bytes; at most %(limit)d are taken.")
            % {"size": size, "limit": MAX_PAYLOAD_BYTES}
        )
    if _deeper_than(MAX_DEPTH, value):
        raise _too_deep()
    if "\\u0000" in text and _holds_nul(value):
        raise Unstorable(_("The payload holds a NUL character (\\u0000), which PostgreSQL cannot store."))
    return value


def _too_deep() -> Unstorable:
    return Unstorable(_("The payload is nested too deeply: at most %(limit)d levels are taken.") % {"limit": MAX_DEPTH})


def _deeper_than(limit: int, value: Any) -> bool:
    """Whether lists and objects stand in each other more than ``limit`` deep; level by level, without recursion."""
    level, depth = _nests([value]), 0
    while level and depth < limit:
        level = [nest for outer in level for nest in _nests(outer.values() if isinstance(outer, dict) else outer)]
        depth += 1
    return bool(level)


def _nests(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list | tuple)]


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(_holds_nul(key) or _holds_nul(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(_holds_nul(item) for item in value)
    return False
