"""A line as a payload: any JSON value, or a sentence that says why it is none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tasks.submission.lines import MAX_LINE_BYTES, Line


class BadLine(ValueError):
    """A line that is no payload; the text says why."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A JSON value and the number of its line."""

    number: int
    value: Any


def read_payload(line: Line) -> Payload | None:
    """The payload of a line; None for a blank one. Raises BadLine."""
    if line.data is None:
        raise BadLine(f"the line is longer than {MAX_LINE_BYTES // 1024 // 1024} MiB")
    try:
        text = line.data.removeprefix(b"\xef\xbb\xbf" if line.number == 1 else b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadLine(f"the line is not UTF-8 (byte {error.start + 1})") from error
    return Payload(line.number, parse_payload(text)) if text.strip() else None


def parse_payload(text: str) -> Any:
    """The JSON value of ``text``. Raises BadLine with what is wrong and where."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise BadLine(f"this is not JSON: {error.msg} (column {error.colno})") from error
    except ValueError as error:  # a constant, or a number with too many digits
        raise BadLine(f"this is not JSON that can be kept: {error}") from error
    except RecursionError as error:
        raise BadLine("the JSON is nested too deeply") from error


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
