"""Secrets that are known to the letter: the keys that this process sends to providers, in every form they come back in.

A provider may quote the key that it refuses, and a key may look like nothing (``wombat-forty-two``), so that neither
its form nor a name beside it gives it away.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator
from threading import Lock
from typing import Any

import re2

from tasks.errors.names import MASKED

#: What servers without keys are sent by custom; words that would blind every message.
_DUMMIES = frozenset(
    {"none", "null", "empty", "test", "dummy", "fake", "local", "ollama", "openai", "vllm", "llama", "key", "token"}
    | {"lm-studio", "not-needed", "no-key", "no-key-required", "sk-no-key-required", "unused", "placeholder", "api-key"}
    | {"anything", "secret", "simulated", "demo", "masked", "model", "provider", "redrive", "error", "request"}
)
#: Shorter ones are found inside words.
_SHORTEST = 6
#: Fewer characters of base64 than this would be found by chance.
_SHORTEST_ENCODED = 8
#: Keys that were rotated away long ago come back no more.
_KEPT = 32

#: Of a longer one this much is looked for, and goes with what it is the beginning of.
_LONGEST = 64


def _options() -> Any:
    options = re2.Options()
    # Keys may be long; a pattern that did not fit would be refused.
    options.max_mem = 256 * 1024 * 1024
    return options


_OPTIONS = _options()
_lock = Lock()
_known: dict[str, str] = {}
_pattern: Any = None


def remember(secret: str) -> None:
    """Mask ``secret`` to the letter from now on, in this process: plain, URL-encoded, in base64, as JSON and HTML."""
    secret = secret.strip()
    if secret in _known or len(secret) < _SHORTEST or secret.lower() in _DUMMIES:
        return
    global _pattern
    with _lock:
        _known[secret] = "|".join(dict.fromkeys(_forms(secret)))
        while len(_known) > _KEPT:
            del _known[next(iter(_known))]
        # The longest first: one key may begin as another does.
        _pattern = re2.compile("|".join(_known[known] for known in sorted(_known, key=len, reverse=True)), _OPTIONS)


def hide(text: str) -> str:
    """``text`` without the secrets that are known."""
    if _pattern is None or _pattern.search(text) is None:
        return text
    # As it was sent, which is by far the most often and costs a fraction of the pattern.
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, MASKED)
    return str(_pattern.sub(lambda match: MASKED, text))


def _forms(secret: str) -> Iterator[str]:
    """Patterns of what ``secret`` looks like on its way back."""
    yield "".join(map(_character, secret[:_LONGEST])) + (r"[^\s\"'<>,;)]*" if len(secret) > _LONGEST else "")
    for form in _in_base64(secret.encode()):
        if len(form) >= _SHORTEST_ENCODED:
            yield re2.escape(form[:_LONGEST]) + (r"[\w+/=\-]*" if len(form) > _LONGEST else "")


def _character(character: str) -> str:
    """A pattern of one character: as it is, URL-encoded once or again, escaped for JSON or for a page."""
    plain, code = re2.escape(character), ord(character)
    if character.isalnum() or character in "-_.~":
        return str(plain)
    encoded = rf"(?i:%(?:25){{0,3}}{code:02x}|\\u{code:04x}|&#x{code:x};|&#{code};)"
    return rf"(?:\\{{0,4}}{plain}|{encoded}|{re2.escape(html.escape(character))})"


def _in_base64(secret: bytes) -> Iterator[str]:
    """The characters that encode ``secret`` wherever it stands in what was encoded (``user:secret``, ``secret:``)."""
    for offset in range(3):
        start, end = (8 * offset + 5) // 6, 8 * (offset + len(secret)) // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(offset) + secret).decode()[start:end]
