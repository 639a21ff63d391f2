"""The fingerprint of a failure: failures that share one are the same fault, and form a failure group."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import re2

from tasks.errors.evidence import HEAD, TAIL, Evidence, body_leaves, is_sentence
from tasks.errors.failure import Failure
from tasks.errors.mask import mask, mask_secrets
from tasks.errors.normalise import normalise, readable, singular
from tasks.errors.text import first_line, is_html, page_text, page_title, window

#: Part of every digest: a change of the rules makes new fingerprints, never silently different old ones.
VERSION = 1

_CODES = frozenset(
    {"code", "type", "status", "reason", "error_type", "error_code", "errorcode", "param", "__type", "quotaid"}
    | {"quotametric", "grpc_status", "finish_reason", "stop_reason"}
)
_STATUS_PREFIX = re2.compile(r"(?i)^\W*(?:error code|status[_ ]code|status|api error|http)\W{0,3}\d{3}\b[\s:\-–,.]*")
_FRAME = re2.compile(r'(?m)^\s*File "([^"\n]+)", line \d+, in (\S+)')
_LIBRARY = re2.compile(r"site-packages|dist-packages|/lib/python\d|<frozen |/importlib/|\\Lib\\")
_SAYS_NOTHING = re2.compile(
    r"(?i)^(?:\W|<\w+>|unknown|unexpected|internal|an?|error|exception|failed"
    r"|failure|none|null|occurred|something|went"
    r"|wrong|list|index|out|of|range|division|by|zero|assertion)*$"
)
#: Builtin errors name what went wrong but not where; two of them are one fault only at one place.
_PLACELESS = frozenset({"KeyError", "IndexError", "TypeError", "AttributeError", "AssertionError", "ZeroDivisionError"})
_GROUPS = ("ExceptionGroup", "BaseExceptionGroup", "FallbackExceptionGroup")
#: Sentences of one body that are read; what says why it failed comes early, and there are one or two.
_SENTENCES_READ = 12
_LITERAL_CHARACTERS = 8_192


@dataclass(frozen=True)
class Fingerprint:
    """``digest``: 16 hexadecimal digits. ``title``: one line for people. ``normalised``: what the digest is of."""

    digest: str
    title: str
    normalised: str


def fingerprint(failure: Failure) -> Fingerprint:
    """The fingerprint of ``failure``. Pure; a megabyte costs no more than its first and last kilobytes."""
    evidence = Evidence(failure)
    name = _short_class(failure.exception or "")
    said = [] if name.endswith(_GROUPS) else _said(failure, evidence)
    causes = {singular(told): told for told in map(_cause, _leaves(evidence, name))}
    lines = [name, _status(evidence), *map(singular, said), *sorted(causes)]
    if not causes and (all(_SAYS_NOTHING.match(line) for line in said) or name.rpartition(".")[2] in _PLACELESS):
        lines.append(_place(failure.traceback or ""))
    normalised = "\n".join(line for line in lines if line)
    digest = hashlib.sha256(f"{VERSION}\n{normalised}".encode("utf-8", "replace")).hexdigest()[:16]
    return Fingerprint(digest, _title(name, said, list(causes.values()), evidence), normalised)


def _said(failure: Failure, evidence: Evidence) -> list[str]:
    """The sentences without what varies, then the codes: of the message, of JSON inside it, and of the body."""
    before, leaves, after = _read(failure.message)
    leaves += evidence.leaves
    sayings = islice((str(value) for path, value in leaves if is_sentence(path, value)), _SENTENCES_READ)
    texts = [_STATUS_PREFIX.sub("", before), *sayings, after]
    body = failure.body
    if isinstance(body, str) and not any(text.strip(_BRACKETS) for text in texts):
        texts.append(_visible(body))
    sentences = _unique(readable(mask(window(text, HEAD, TAIL // 2))) for text in texts)
    codes = sorted({_code(path, value) for path, value in leaves if _is_code(path, value, evidence)})
    return [*sentences, *([", ".join(codes)] if codes else [])]


_BRACKETS = " \t\r\n{}[]()'\",.:;-"


def _unique(texts: Iterable[str]) -> list[str]:
    """Without blanks, repetitions, and what an earlier text already holds."""
    kept: dict[str, str] = {}
    for text in texts:
        same = singular(text)
        if text.strip(_BRACKETS) and not any(same in earlier for earlier in kept):
            kept[same] = text
    return list(kept.values())


def _visible(text: str) -> str:
    """Of a web page its title, which names the fault; the rest names hosts, times and rays."""
    text = window(text, 4 * HEAD, TAIL)
    return (page_title(text) or page_text(text)) if is_html(text) else text


def _read(message: str) -> tuple[str, list[tuple[str, Any]], str]:
    """A message as the text before its JSON or Python dict, that object's leaves, and the text after it."""
    if is_html(message):
        return _visible(message), [], ""
    text = window(message, HEAD, TAIL)
    start, end = text.find("{"), text.rfind("}")
    found = _object(text[start : end + 1]) if 0 <= start < end else None
    if not isinstance(found, dict):
        return text, [], ""
    leaves = list(body_leaves(found))
    if not any(is_sentence(path, value) for path, value in leaves):
        return text, [], ""
    return text[:start], leaves, text[end + 1 :]


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if len(text) > _LITERAL_CHARACTERS:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _is_code(path: str, value: Any, evidence: Evidence) -> bool:
    """Codes that tell faults apart; one that only repeats the HTTP status does not."""
    text = str(value)
    is_named = path.rpartition(".")[2].lower() in _CODES
    return is_named and 0 < len(text) <= 100 and text not in {str(evidence.status), "error", "None", "null"}


def _code(path: str, value: Any) -> str:
    text = mask_secrets(str(value))
    name = path.rpartition(".")[2]
    return f"{name}={normalise(text) if name == 'param' else text}"


def _short_class(name: str) -> str:
    """``openai.RateLimitError`` for ``openai.error.RateLimitError`` and ``openai2._x.RateLimitError``."""
    package, _, rest = name.strip().partition(".")
    return f"{package.rstrip('0123456789')}.{rest.rpartition('.')[2]}" if rest else package


def _status(evidence: Evidence) -> str:
    return f"HTTP {evidence.status}" if evidence.status is not None and evidence.status >= 300 else ""


def _leaves(evidence: Evidence, name: str) -> list[str]:
    """The causes that count: all of a group, else the innermost, as how a library wraps changes with its release."""
    return list(evidence.causes) if name.endswith(_GROUPS) else list(evidence.causes[-1:])


def _cause(cause: str) -> str:
    kind, _, message = cause.partition(": ")
    before, leaves, after = _read(message)
    sayings = islice((str(value) for path, value in leaves if is_sentence(path, value)), _SENTENCES_READ)
    said = " ".join(_unique(readable(mask(window(text, HEAD, TAIL // 2))) for text in (before, *sayings, after)))
    return f"caused by {_short_class(kind.rstrip(':'))}: {said}".rstrip(": ")


def _place(traceback: str) -> str:
    """File and function of the innermost frame of the application, without line and directory."""
    frames = [(match.group(1), match.group(2)) for match in _FRAME.finditer(window(traceback, HEAD, 4 * TAIL))]
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])] or frames
    return f"at {own[-1][0].replace(chr(92), '/').rpartition('/')[2]} in {own[-1][1]}" if own else ""


def _title(name: str, said: list[str], causes: list[str], evidence: Evidence) -> str:
    """``RateLimitError 429: You exceeded your current quota`` in one line."""
    words = next((line for line in [*said, *causes] if line), "")
    head = " ".join(part for part in (name.rpartition(".")[2], _status(evidence).removeprefix("HTTP ")) if part)
    return first_line(": ".join(part for part in (head, words) if part)) or "Failure without a message"
