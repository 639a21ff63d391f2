"""What a failure says, laid out for rules: class names, innermost cause, effective status, text, body fields, headers.

Wrappers are read through: a class or a message anywhere in the cause chain counts, and the HTTP status is looked for in
the body and in the text where the exception has none or a 200. JSON inside text is read where it stands, whole or cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import re2

from tasks.errors.failure import Failure
from tasks.errors.text import as_text, is_html, page_text, page_title, window, without_frames

#: Characters read of each text: what names a fault stands at the beginning or at the end.
HEAD, TAIL = 4096, 1024
#: Leaves read of one body, and how deep.
LEAVES, DEPTH = 400, 12
VALUE_CHARACTERS = 200
#: Lists, objects and leaves looked at in all; empty ones cost as well.
_NODES = 4_000

#: Keys of an error body that hold a sentence. Others may quote the prompt or the answer, which must not decide a code.
_SENTENCES = frozenset(
    {"message", "msg", "detail", "details", "error", "error_description", "errormessage", "error_msg", "err_msg"}
    | {"errmsg", "status_msg", "raw", "localized_message", "title", "description", "debug_message", "reason", "reasons"}
)
#: Keys whose content is the user's or the model's.
_QUOTED = frozenset(
    {"failed_generation", "flagged_input", "input", "content", "prompt", "messages", "completion", "output", "text"}
)
_STATUS_KEYS = frozenset({"code", "status", "status_code", "statuscode", "http_status", "error_code"})

_FIELD = re2.compile(
    r"""["'](code|type|status|detail|reason|error_type|error_code|errorCode|param|quotaId|quotaValue|finish_reason|"""
    r"""status_code|statusCode|Code|__type|:exception-type|grpc_status|error)["']\s*[:=]\s*"""
    r"""(?:"([^"\n]{1,200})"|'([^'\n]{1,200})'|(-?\d{1,9})\b)"""
)
_STATUS = re2.compile(
    r"(?i)(?:\b(?:error|status|response|http)[ _-]?code[ '\":=]*(?:of )?|\bstatus[ '\":=]+"
    r"|\bHTTP(?:/\d(?:\.\d)?)?(?: status)?(?: error)?[ :=]+|\bAPI error \(|\berror \(|\b(?:Server|Client) error '"
    r"|<)([1-5]\d\d)\b"
    r"|^\(?([45]\d\d)(?: (?:Server|Client) Error\b|[, ]+message=| status code\b| [A-Z_]{4,}\b|: )"
    r"|\btoo many ([45]\d\d) error responses"
)
#: Codes inside a text are fields; left among the words they would read as sentences ("model … invalid_request_error").
_CODE_FIELD = re2.compile(
    r"""["'](?:code|type|status|error_type|error_code|errorCode|param|status_code|statusCode|Code|__type)["']\s*[:=]\s*"""
    r"""(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'|-?\d{1,9}\b|None\b|null\b),?"""
)
#: What the model or the user wrote, quoted by a parser.
_INPUT_VALUE = re2.compile(r"(?s)input_value=(?:'[^'].*?|\"[^\"].*?|[^'\"].*?), input_type=")
_OOM = re2.compile(r"(?i)tried to allocate ([\d.]+) ([KMGT]i?B)\b.*?total capacity of ([\d.]+) ([KMGT]i?B)\b")
_UNITS = {"k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True)
class Evidence:
    """A failure as rules see it. Every text is cut to a size that keeps a rule's cost in microseconds."""

    failure: Failure
    kind: str = ""

    @cached_property
    def classes(self) -> str:
        """Qualified class names, one a line, the raised exception first, then its causes."""
        return "\n".join([self.failure.exception or "", *(_class_of(cause) for cause in self.causes)])

    @cached_property
    def causes(self) -> tuple[str, ...]:
        """The cause chain, innermost last, less what only accompanies it: the CancelledError under a timeout."""
        return tuple(
            _words(cause) for cause in self.failure.cause_chain if not _class_of(cause).endswith("CancelledError")
        )

    @cached_property
    def cause(self) -> str:
        """The innermost cause as ``module.Class: message``, or the exception itself where nothing caused it."""
        return self.causes[-1] if self.causes else f"{self.failure.exception or ''}: {self._message}"

    @cached_property
    def _message(self) -> str:
        text = self.failure.message
        return page_text(window(text, 4 * HEAD, TAIL)) if is_html(text) else _words(text)

    @cached_property
    def leaves(self) -> list[tuple[str, Any]]:
        return list(body_leaves(self.failure.body))

    @cached_property
    def text(self) -> str:
        """All that is said: the message, the causes, and the sentences of the body. HTML reads as its visible text."""
        body = self.failure.body
        parts = [self._message, *self.causes]
        if isinstance(body, str) and body:
            parts.append(page_text(window(body, 4 * HEAD, TAIL)) if is_html(body) else window(body, HEAD, TAIL))
        else:
            parts += [value for path, value in self.leaves if is_sentence(path, value)]
        return str(_CODE_FIELD.sub(_nothing, window("\n".join(parts), 6144, 2048)))

    @cached_property
    def fields(self) -> str:
        """``path=value`` lines: the scalars of the body, those of JSON inside the text, and what we found ourselves."""
        lines = [f"{path}={as_text(value)}" for path, value in self.leaves if len(str(value)) <= VALUE_CHARACTERS]
        lines += [f"{path}={value}" for path, value in self._quoted]
        lines += _found(self.failure, self.text)
        return window("\n".join(lines), 6144, 2048)

    @cached_property
    def _quoted(self) -> list[tuple[str, str]]:
        """Known fields of JSON or of Python dicts inside message, causes and body text, whole or cut off."""
        body = self.failure.body
        texts = [self.failure.message, *self.causes, body if isinstance(body, str) else ""]
        found = (match for text in texts for match in _FIELD.finditer(window(text, HEAD, TAIL)))
        return [(match.group(1), match.group(2) or match.group(3) or match.group(4)) for match in found]

    @cached_property
    def headers(self) -> str:
        """``name: value`` lines, names in lower case."""
        lines = (f"{name.lower()}: {value}" for name, value in self.failure.headers.items())
        return window("\n".join(lines), HEAD, TAIL)

    @cached_property
    def status(self) -> int | None:
        """The HTTP status that counts: the answer's, unless that is missing or a 200 around an error."""
        given = self.failure.http_status
        if given is not None and given >= 300:
            return given
        return next(self._statuses(), given)

    def _statuses(self) -> Iterator[int]:
        for path, value in [*self.leaves, *self._quoted]:
            name = path.rpartition(".")[2].lower()
            if name in _STATUS_KEYS and str(value).isdigit() and 400 <= int(value) <= 599:
                yield int(value)
        for text in (self._message, *self.causes):
            for match in _STATUS.finditer(text):
                number = int(match.group(1) or match.group(2) or match.group(3))
                if number >= 300:
                    yield number

    @cached_property
    def code_line(self) -> str:
        """The line of source that raised, from the traceback: it tells a bug of ours from a missing envelope."""
        lines = window(self.failure.traceback or "", 0, 4 * TAIL).splitlines()
        after = [lines[at + 1].strip() for at in range(len(lines) - 1) if lines[at].lstrip().startswith('File "')]
        return after[-1] if after else ""


def _nothing(match: Any) -> str:
    return ""


def _unquoted(match: Any) -> str:
    return "input_value=…, input_type="


def _words(text: str) -> str:
    """A text without stack frames and without the values that a parser quotes."""
    return str(_INPUT_VALUE.sub(_unquoted, without_frames(window(text, HEAD, TAIL))))


def _class_of(cause: str) -> str:
    return cause.partition(": ")[0].rstrip(":").strip()


def is_sentence(path: str, value: Any) -> bool:
    """Whether the value at ``path`` of a body is something said, rather than a code or a piece of the request."""
    names = [name for name in path.lower().split(".") if not name.isdigit()]
    return isinstance(value, str) and bool(names) and names[-1] in _SENTENCES and not _QUOTED.intersection(names)


def body_leaves(body: Any) -> Iterator[tuple[str, Any]]:
    """(path, scalar) pairs of a JSON body, breadth bounded; text that is JSON itself is opened."""
    stack: list[tuple[str, Any, int]] = [("", _opened(body), 0)]
    given = seen = 0
    while stack and given < LEAVES and seen < _NODES:
        path, value, depth = stack.pop()
        seen += 1
        if isinstance(value, Mapping | list) and depth < DEPTH:
            pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
            inner = [(f"{path}.{name}" if path else name, _opened(item), depth + 1) for name, item in _first(pairs)]
            stack.extend(reversed(inner))
        elif path and value is not None and not isinstance(value, Mapping | list):
            given += 1
            yield path, _scalar(value)


def _scalar(value: Any) -> Any:
    """A leaf that can be shown: text cut, and what is no number that fits a line as text."""
    if isinstance(value, str):
        return as_text(window(value, HEAD, TAIL))
    is_plain = isinstance(value, bool | float) or (isinstance(value, int) and value.bit_length() <= 128)
    return value if is_plain else as_text(value)


def _first(pairs: Any) -> list[tuple[str, Any]]:
    return [(as_text(key)[:VALUE_CHARACTERS], item) for key, item in islice(pairs, LEAVES)]


def _opened(value: Any) -> Any:
    """The object in a text that is JSON (a gateway's ``raw``), else the value."""
    if not isinstance(value, str) or len(value) > 65536 or value.lstrip()[:1] not in {"{", "["}:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _found(failure: Failure, text: str) -> Iterator[str]:
    """Fields that no library states: a web page instead of an answer, an allocation set against its device."""
    for part in (failure.message, failure.body):
        if isinstance(part, str) and is_html(part):
            yield f"html={page_title(part) or 'untitled'}"
    memory = _OOM.search(text)
    if memory:
        wanted, device = (_bytes(memory.group(at), memory.group(at + 1)) for at in (1, 3))
        yield f"allocation={'larger_than_device' if wanted > device else 'fits_device'}"


def _bytes(number: str, unit: str) -> float:
    try:
        return float(number) * 1024.0 ** _UNITS[unit[0].lower()]
    except ValueError:
        return 0.0
