"""One rule of the catalogue: conditions on a failure that give it a code. Its patterns are re2, so none can hang."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from tasks.errors.evidence import Evidence

PATTERN_BYTES = 2_000


def either(*alternatives: str) -> str:
    """One pattern that holds where any of ``alternatives`` does."""
    return "|".join(alternatives)


class RuleError(ValueError):
    """A rule or a code that cannot be used; the text says which and why."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule: all conditions given must hold; blank holds for any. The first rule that holds gives the code.

    ``exception`` is searched in the qualified class names of the exception and its causes, one a line; ``cause`` in the
    innermost cause, ``module.Class: message``; ``message`` in everything said; ``body`` in the body's ``path=value``
    lines; ``header`` in ``name: value`` lines; ``source`` in the line of code that raised. These are re2 patterns,
    upper and lower case alike, ``^`` and ``$`` at lines. ``http_status`` is a list (``429, 503, 5xx``, ``none`` for no
    answer); ``provider`` and ``kind`` are whole names, ``*`` stands for anything. ``retryable`` overrides the code's.
    """

    code: str
    position: int = 0
    exception: str = ""
    cause: str = ""
    http_status: str = ""
    message: str = ""
    body: str = ""
    header: str = ""
    source: str = ""
    provider: str = ""
    kind: str = ""
    retryable: bool | None = None

    def check(self) -> None:
        """Raise RuleError, naming the field, for what cannot work; a rule without conditions would match all."""
        for name in ("exception", "cause", "message", "body", "header", "source"):
            _pattern(getattr(self, name), name)
        _statuses(self.http_status)
        if not any(getattr(self, name) for name in _CONDITIONS):
            raise RuleError("the rule has no condition, so it would match every failure")

    def matches(self, evidence: Evidence) -> bool:
        """Whether every condition given holds for this failure. Cheap ones are asked first."""
        return (
            self._named(evidence)
            and (not self.http_status or evidence.status in _statuses(self.http_status))
            and _found(self.exception, "exception", evidence, "classes")
            and _found(self.header, "header", evidence, "headers")
            and _found(self.cause, "cause", evidence, "cause")
            and _found(self.body, "body", evidence, "fields")
            and _found(self.message, "message", evidence, "text")
            and _found(self.source, "source", evidence, "code_line")
        )

    def _named(self, evidence: Evidence) -> bool:
        return (not self.provider or _is_name(self.provider, evidence.failure.provider or "")) and (
            not self.kind or _is_name(self.kind, evidence.kind)
        )


_CONDITIONS = ("exception", "cause", "http_status", "message", "body", "header", "source", "provider", "kind")


@lru_cache(maxsize=4096)
def _pattern(text: str, field_name: str = "pattern") -> Any:
    """The compiled pattern. Raises RuleError with re2's reason."""
    if len(text.encode("utf-8", "replace")) > PATTERN_BYTES:
        raise RuleError(f"{field_name}: the pattern is longer than {PATTERN_BYTES} bytes")
    try:
        return re2.compile(f"(?im){text}", _OPTIONS)
    except re2.error as error:
        reason = error.args[0] if error.args else "not a pattern"
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise RuleError(f"{field_name}: {text!r} is no re2 pattern: {reason}") from error


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


_OPTIONS = _options()


def _found(text: str, field_name: str, evidence: Evidence, part: str) -> bool:
    return not text or _pattern(text, field_name).search(getattr(evidence, part)) is not None


@lru_cache(maxsize=1024)
def _statuses(text: str) -> frozenset[int | None]:
    """The statuses of ``429, 503, 5xx, none``. Raises RuleError for anything else."""
    found: set[int | None] = set()
    for word in text.replace(",", " ").split():
        if word.lower() == "none":
            found.add(None)
        elif len(word) == 3 and word[0] in "123456789" and word[1:].lower() == "xx":
            found.update(range(int(word[0]) * 100, int(word[0]) * 100 + 100))
        elif word.isascii() and word.isdigit() and 100 <= int(word) <= 999:
            found.add(int(word))
        else:
            raise RuleError(f"http_status: {word!r} is neither a status such as 429 nor a class such as 5xx")
    return frozenset(found)


@lru_cache(maxsize=1024)
def _glob(text: str) -> Any:
    return re2.compile("(?i)" + ".*".join(re2.escape(part) for part in text.split("*")))


def _is_name(wanted: str, name: str) -> bool:
    return _glob(wanted).fullmatch(name) is not None
