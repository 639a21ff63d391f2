"""Typed readers of the environment: every setting is read here, once, with a clear error.

Each variable NAME may also be given as NAME_FILE, the path of a file that holds the value (the way secrets are
mounted into containers). NAME wins over NAME_FILE; an empty value, as ``NAME=${NAME:-}`` gives, is none.

An error names the variable and never its value where that may be a secret: what a file holds, or what was given as the
path of one (a key that was put into SECRET_KEY_FILE by mistake). Nor does it carry the first error along, whose text or
fields do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured

TRUE = {"1", "true", "yes", "on"}
Number = TypeVar("Number", int, float)
FALSE = {"0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    """The value of NAME, else the stripped content of the file NAME_FILE, else ``default``.

    Raises ImproperlyConfigured when NAME_FILE names a file that cannot be read.
    """
    if os.environ.get(name):
        return os.environ[name]
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return default
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror or "no reason given" if isinstance(error, OSError) else "it is no UTF-8 text"
    raise ImproperlyConfigured(f"{name}_FILE must be the path of a file with the value; it cannot be read: {why}.")


def _shown(name: str, value: str) -> str:
    """The value for an error message: as it was given, but nothing of a file."""
    return repr(value) if name in os.environ else f"what the file of {name}_FILE holds"


def flag(name: str, default: bool = False) -> bool:
    """A yes/no setting: 1, true, yes, on or 0, false, no, off."""
    value = text(name).strip().lower()
    if not value:
        return default
    if value in TRUE:
        return True
    if value in FALSE:
        return False
    raise ImproperlyConfigured(f"{name} is {_shown(name, value)}; use one of 1, true, yes, on, 0, false, no, off.")


def _number(
    name: str, read: Callable[[str], Number], default: Number, minimum: Number, maximum: Number, word: str
) -> Number:
    value = text(name).strip()
    if not value:
        return default
    try:
        number = read(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {_shown(name, value)}; it must be {word}.") from None
    if not minimum <= number <= maximum:
        raise ImproperlyConfigured(f"{name} is {_shown(name, value)}; it must be from {minimum} to {maximum}.")
    return number


def integer(name: str, default: int, *, minimum: int = 0, maximum: int = 1_000_000) -> int:
    """A whole number within [minimum, maximum]."""
    return _number(name, int, default, minimum, maximum, "a whole number")


def seconds(name: str, default: float, *, minimum: float = 0.0, maximum: float = 86_400.0) -> float:
    """A duration in seconds within [minimum, maximum]."""
    return _number(name, float, default, minimum, maximum, "a number of seconds")


def words(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """A comma-separated list, blanks dropped."""
    value = text(name)
    return [word.strip() for word in value.split(",") if word.strip()] if value else list(default)
