"""Texts of failures: made storable, cut to size, freed of HTML and of stack frames. Pure and linear in the length."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import re2

# Python's own engine where a pattern is linear and matches often: it substitutes many times faster than re2's wrapper.
_HTML = re2.compile(r"(?i)^\s*(<!--[^>]*-->\s*)?<(!doctype html|html|head|body|title|h1|center)\b")
_TITLE = re2.compile(r"(?is)<title[^>]*>(.*?)</title>")
_HIDDEN = re2.compile(r"(?is)<!--.*?-->|<script\b.*?</script\s*>|<style\b.*?</style\s*>|<head\b.*?</head\s*>")
_TAG = re.compile(r"<[^<>]*>")
_FRAME = re2.compile(r'(?m)^[ \t|+\-]*File "[^"\n]*", line \d+.*\n?(?:[ \t|]+(?:[^\s|].*)?\n?)*')
_BLANK = re.compile(r"\s+")
#: How much beyond a cut is cleaned, and then thrown away: longer than any secret.
SLACK = 8 * 1024


def as_text(value: Any) -> str:
    """``value`` as text that PostgreSQL can store: bytes decoded, NUL and lone surrogates replaced."""
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("utf-8", "replace")
    text = value if isinstance(value, str) else _described(value)
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\x00", "\ufffd")


def _described(value: Any) -> str:
    """``str(value)``; an exception may carry an object whose ``__str__`` fails itself."""
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__qualname__} that cannot be shown: {type(error).__name__}>"


def cut(text: str, limit: int, *, tail: int = 0, clean: Callable[[str], str] = str) -> str:
    """``text`` in at most ``limit`` bytes of UTF-8; what is left out is marked with its size.

    ``tail`` bytes of the end are kept as well (a traceback says at its end what happened). ``clean`` is applied to what
    is kept and a little more, and what was last of that is left out, so that nothing it looks for is halved by the cut
    and then missed: cleaned text is shorter, and would bring the raw edge into sight.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        cleaned = clean(text)
        return cleaned if len(cleaned.encode("utf-8", "replace")) <= limit else cut(cleaned, limit, tail=tail)
    mark = f"\n[cut: {len(data)} bytes in all]\n"
    head = max(0, limit - tail - len(mark))
    first = clean(data[: head + SLACK].decode("utf-8", "ignore")).encode("utf-8", "replace")
    first = first[: min(head, max(0, len(first) - SLACK))] if len(data) > head + SLACK else first[:head]
    last = _last(data, tail, clean) if tail else b""
    return first.decode("utf-8", "ignore") + mark + last.decode("utf-8", "ignore")


def _last(data: bytes, tail: int, clean: Callable[[str], str]) -> bytes:
    last = clean(data[max(0, len(data) - tail - SLACK) :].decode("utf-8", "ignore")).encode("utf-8", "replace")
    return last[max(len(last) - tail, min(SLACK, len(last)) if len(data) > tail + SLACK else 0) :]


def window(text: str, head: int, tail: int) -> str:
    """The first ``head`` and the last ``tail`` characters, so that a megabyte costs no more than a page."""
    return text if len(text) <= head + tail else f"{text[:head]}\n{text[-tail:]}"


def is_html(text: str) -> bool:
    """Whether ``text`` is a web page rather than an answer."""
    return _HTML.search(text[:512]) is not None


def page_title(text: str) -> str:
    """The title of a web page, blanks squeezed; empty if it has none."""
    found = _TITLE.search(text[:65536])
    return _BLANK.sub(" ", html.unescape(found.group(1))).strip() if found else ""


def page_text(text: str) -> str:
    """What a reader of a web page sees: its title, then its body without scripts, styles and tags."""
    body = _TAG.sub(" ", _HIDDEN.sub(" ", text))
    return " ".join(part for part in (page_title(text), _BLANK.sub(" ", html.unescape(body)).strip()) if part)


def without_frames(text: str) -> str:
    """``text`` without the ``File "…", line …`` frames of tracebacks inside it; their last lines stay."""
    return _FRAME.sub("", text) if 'File "' in text else text


def first_line(text: str, limit: int = 200) -> str:
    """The first line that is not blank, at most ``limit`` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"
