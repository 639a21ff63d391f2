"""A failure as a value: what is known of it, in one shape whatever library raised it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tasks.errors.text import as_text, cut, is_html, page_text

LAST_ERROR_BYTES = 16 * 1024
TRACEBACK_BYTES = 64 * 1024
BODY_BYTES = 64 * 1024
CAUSES_KEPT = 20
#: Where the failures that we find ourselves live: people read their class name alone.
_OWN_FAULTS = "tasks.errors.faults."

#: Python writes no integer of more than 4,300 digits.
_LARGEST_BITS = 4_096

Body = dict[str, Any] | list[Any] | str | None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """What is known of one failure.

    ``exception`` is the qualified class name (``openai.RateLimitError``), ``cause_chain`` its causes, innermost last,
    each as ``module.Class: message``. ``headers`` are those of the provider's answer, names in lower case; ``body`` is
    its JSON or its text. Texts given as bytes are decoded; NUL and lone surrogates are replaced, so each part can be
    stored. A status that is none (-1, a float, a word) is left out.
    """

    exception: str | None = None
    message: str = ""
    http_status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body = None
    traceback: str | None = None
    provider: str | None = None
    cause_chain: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "message", as_text(self.message or ""))
        put(self, "headers", {as_text(name).lower(): as_text(value) for name, value in (self.headers or {}).items()})
        put(self, "cause_chain", tuple(as_text(cause) for cause in self.cause_chain or ()))
        for name in ("exception", "traceback", "provider"):
            value = getattr(self, name)
            put(self, name, None if value is None else as_text(value))
        if isinstance(self.body, str | bytes | bytearray):
            put(self, "body", as_text(self.body))
        put(self, "http_status", as_status(self.http_status))

    @classmethod
    def from_exception(cls, error: BaseException, *, provider: str | None = None) -> Failure:
        """Read ``error``: SDK and HTTP library attributes, cause chain, traceback. Never raises.

        The parts are cut to the sizes kept, not yet masked: store ``failure.masked()``.
        """
        from tasks.errors.capture import capture

        return capture(error, provider=provider)

    @property
    def last_error(self) -> str:
        """One text for people: class, message, HTTP status, causes. At most 16 KiB; not masked by itself."""
        return cut("\n".join(_sentences(self)), LAST_ERROR_BYTES)

    def masked(self) -> Failure:
        """This failure as it may be stored: without secrets, each part cut to its size with a mark."""
        from tasks.errors.mask import mask_headers, mask_secrets, mask_value

        def short(text: str, limit: int, tail: int = 0) -> str:
            return cut(text, limit, tail=tail, clean=mask_secrets)

        traceback = self.traceback and short(self.traceback, TRACEBACK_BYTES, TRACEBACK_BYTES // 2)
        causes = tuple(short(cause, LAST_ERROR_BYTES) for cause in self.cause_chain[:CAUSES_KEPT])
        body = storable(self.body)
        text = body if isinstance(body, str) or body is None else json.dumps(body, ensure_ascii=False)
        is_kept_whole = not isinstance(body, str) and len((text or "").encode()) <= BODY_BYTES
        return replace(
            self,
            message=short(self.message, LAST_ERROR_BYTES),
            headers=mask_headers(self.headers),
            body=mask_value(body) if is_kept_whole else short(text or "", BODY_BYTES),
            traceback=traceback,
            cause_chain=causes,
        )

    def to_json(self) -> dict[str, Any]:
        """A dict for a jsonb column: strings, finite numbers, lists and dicts only."""
        return {**asdict(replace(self, body=None)), "body": storable(self.body), "cause_chain": list(self.cause_chain)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Failure:
        """The failure that ``to_json`` wrote; unknown keys are ignored, so that older rows stay readable."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if data.get(name) is not None}
        return cls(**{**known, "cause_chain": tuple(known.get("cause_chain", ()))})


def as_status(value: Any) -> int | None:
    """``value`` as the status of an HTTP answer, three digits; None for anything else."""
    if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isdigit():
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_number and 100 <= value <= 999 else None


def storable(value: Any, depth: int = 40) -> Any:
    """``value`` without what JSON or PostgreSQL refuse: NaN, NUL, lone surrogates, unknown objects, endless depth.

    Of endless lists and objects the part that is kept: each entry takes a byte at least.
    """
    return _storable(value, depth, iter(range(BODY_BYTES)))


def _storable(value: Any, depth: int, entries: Iterator[int]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _LARGEST_BITS else as_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping | list | tuple | set | frozenset) and depth <= 0:
        return "[too deep]"
    if isinstance(value, Mapping):
        return {
            as_text(key): _storable(item, depth - 1, entries)
            for (key, item), _ in zip(value.items(), entries, strict=False)
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_storable(item, depth - 1, entries) for item, _ in zip(value, entries, strict=False)]
    return as_text(value)


def _sentences(failure: Failure) -> list[str]:
    message = page_text(failure.message[:BODY_BYTES]) if is_html(failure.message) else failure.message.strip()
    name = (failure.exception or "").removeprefix(_OWN_FAULTS)
    head = ": ".join(part for part in (name, message) if part) or "failed without a message"
    status = failure.http_status
    if status is not None and str(status) not in head:
        head = f"{head} (HTTP {status})"
    return [head, *(f"caused by {cause.removeprefix(_OWN_FAULTS).rstrip(': ')}" for cause in failure.cause_chain)]
