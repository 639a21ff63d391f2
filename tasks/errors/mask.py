"""Masking. ``mask_secrets``: before an error is stored and in logs. ``mask``: for display, personal data as well.

Ids, hashes, uuids, hosts and model names stay: people need them to look further. A value is masked for its own form (a
key that starts with ``sk-``), for the name that it stands beside (``password=``), or because it is a key that this
process sends. All of it is linear in the length of the text, whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tasks.errors import known, personal
from tasks.errors.forms import hide_forms, may_hold_secret
from tasks.errors.names import MASKED, Strength, counts, is_nothing, is_secret, is_tokenlike, strength_of
from tasks.errors.pairs import hide_pairs, hide_prose, joined, lowered
from tasks.errors.text import as_text

#: Masking is repeated until nothing changes, so that masking twice is masking once.
_PASSES = 6
_DEPTH = 40

_WEBHOOK = re.compile(
    r"://(?:hooks\.slack\.com/(?:services|workflows)|(?:\w{1,40}\.)?discord(?:app)?\.com/api/webhooks"
    r"|[\w.\-]{1,80}\.webhook\.office\.com)/([^\s'\"<>]++)"
)
#: An address up to the next one: several may stand in one list.
_ADDRESS = re.compile(r"://((?:[^\s'\"<>:]++|:(?!//))+)")
_SCHEME = re.compile(r"(?:bearer|basic|apikey|negotiate)\s++([a-z0-9._~+/=\-]{8,}+)")
_OPTION = re.compile(r"-(?<!\S-)-?([a-z0-9_\-]{1,60}+)[ =](?:\"([^\"\n]++)\"|'([^'\n]++)'|([^\s\"'\-][^\s\"']*+))")
_QUERY = re.compile(r"[?&;]([a-z0-9_.\-]{1,60}+)=(?!\[masked\])([^\s&#\"'<>)}]{6,}+)")
_QUERY_NAMES = frozenset({"key", "sig", "code", "sas", "pass", "access_key_id", "awsaccesskeyid"})
_CURL_USER = re.compile(r"-(?<!\S-)(?:u|-user|-proxy-user)[ =]['\"]?+[^\s:'\"]++:([^\s'\"]++)")
_HOST_LEAK = re.compile(r"['\"]([^'\"@\s]++)@[^'\"\s]++['\"]")
_HOST_WORDS = re.compile(r"(?:resolve|host|host name|hostname|address)[ =:]+\Z")
_PORT = re.compile(r"\d{1,5}(?:[/?#]|\Z)")
#: Keys of an object under ``token`` that hold the token itself.
_VALUES = frozenset({"value", "secret", "raw", "data", "key", "token"})


def mask_secrets(text: str) -> str:
    """``text`` with keys, tokens, passwords and signatures replaced by ``[masked]``. Idempotent."""
    return _settled(as_text(text), _secrets)


def mask(text: str) -> str:
    """``text`` for display: secrets, e-mail addresses, phone, card and bank account numbers replaced. Idempotent."""
    return _settled(as_text(text), lambda value: personal.hide(_secrets(value)))


def mask_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers without credentials and cookies."""
    return {
        mask_secrets(name): MASKED if is_secret_name(name) and value else mask_secrets(value)
        for name, value in headers.items()
    }


def mask_value(value: Any, depth: int = _DEPTH) -> Any:
    """A JSON value with its secrets masked: by the name of the key, or inside its texts."""
    return _value(value, Strength.NONE, depth)


def is_secret_name(name: str) -> bool:
    """Whether what stands under ``name`` is a credential (``x-api-key``, ``set-cookie``, ``DB_PASSWORD``)."""
    said = strength_of(name)
    is_thing = name.strip().lower().endswith(("key", "signature", "pass")) or counts(name)
    return said is Strength.STRONG or (said is not Strength.NONE and not is_thing)


def _value(value: Any, said: Strength, depth: int) -> Any:
    """``value`` as it stands under a name that says so much."""
    if isinstance(value, str | bytes):
        return _text(as_text(value), said)
    if depth <= 0 and isinstance(value, Mapping | list | tuple):
        return MASKED
    if isinstance(value, Mapping):
        return {mask_secrets(as_text(key)): _named(as_text(key), item, said, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_value(item, said, depth - 1) for item in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return MASKED if said is Strength.STRONG and is_number else value


def _named(key: str, value: Any, outer: Strength, depth: int) -> Any:
    """What stands under ``key``: the stronger of what this name and those around it say."""
    if isinstance(value, str) and value and is_secret_name(key):
        return value if is_nothing(value) else MASKED
    said = strength_of(key)
    if outer is not Strength.NONE and key.lower() in _VALUES:
        said = Strength.STRONG
    if (
        said is Strength.STRONG
        and outer is Strength.NONE
        and counts(key)
        and not isinstance(value, str | list | Mapping)
    ):
        return value
    return _value(value, max(said, outer), depth)


def _text(text: str, said: Strength) -> str:
    return MASKED if said is not Strength.NONE and is_secret(text, said) else mask_secrets(text)


def _settled(text: str, once: Callable[[str], str]) -> str:
    for _ in range(_PASSES):
        masked = once(text)
        if masked == text:
            break
        text = masked
    return text


def _secrets(text: str) -> str:
    text = known.hide(text)
    if not may_hold_secret(text):
        return text
    for needle, rule in _RULES:
        low = lowered(text)
        if any(part in low for part in needle):
            text = rule(text, low)
    return text


def _forms(text: str, low: str) -> str:
    return hide_forms(text)


def _each(pattern: re.Pattern[str], piece: Callable[[str, Any], tuple[int, int, str] | None]) -> _Rule:
    """A rule that replaces what ``piece`` says of each match in the text in lower case."""

    def rule(text: str, low: str) -> str:
        found = (piece(text, match) for match in pattern.finditer(low))
        return joined(text, (part for part in found if part is not None))

    return rule


def _last_group(text: str, match: Any) -> tuple[int, int, str] | None:
    start, end = match.span(match.lastindex)
    return None if text.startswith(MASKED, start) else (start, end, MASKED)


def _scheme(text: str, match: Any) -> tuple[int, int, str] | None:
    """``Bearer token`` is prose, ``Bearer abc123…`` is a credential."""
    start, end = match.span(1)
    token = text[start:end]
    is_word = match.start() > 0 and (text[match.start() - 1].isalnum() or text[match.start() - 1] == "_")
    is_credential = is_tokenlike(token) or (len(token) >= 16 and token.lower() != token)
    return (start, end, MASKED) if is_credential and not is_word else None


def _option(text: str, match: Any) -> tuple[int, int, str] | None:
    said = strength_of(match[1])
    is_token = said is Strength.WEAK and match[1].endswith("token")
    return _last_group(text, match) if said is Strength.STRONG or is_token else None


def _parameter(text: str, match: Any) -> tuple[int, int, str] | None:
    name, (start, end) = match[1], match.span(2)
    is_named = name in _QUERY_NAMES or strength_of(name) is not Strength.NONE
    return (start, end, MASKED) if is_named else None


def _host(text: str, match: Any) -> tuple[int, int, str] | None:
    before = match.string[max(0, match.start() - 40) : match.start()]
    return (*match.span(1), MASKED) if _HOST_WORDS.search(before) and match[1] != MASKED else None


def _userinfo(text: str, match: Any) -> tuple[int, int, str] | None:
    """An address without its password. The last ``@`` ends the password, which may hold one itself."""
    start, end = match.span(1)
    head, at, _ = text[start:end].rpartition("@")
    user, colon, password = head.partition(":")
    if not at or "/" in user or "?" in user or (colon and _PORT.match(password)):
        return None
    if not colon:
        return (start, start + len(user), MASKED) if len(user) >= 16 else None
    begin = start + len(user) + 1
    return (begin, begin + len(password), MASKED) if password and password != MASKED else None


_Rule = Callable[[str, str], str]
#: Each rule with what a text must hold for it, in the order in which they are asked.
_RULES: tuple[tuple[tuple[str, ...], _Rule], ...] = (
    (("://",), _each(_WEBHOOK, _last_group)),
    (("://",), _each(_ADDRESS, _userinfo)),
    (("",), _forms),
    ((":", "=", ">", "%3", ","), hide_pairs),
    (("bearer", "basic", "apikey", "negotiate"), _each(_SCHEME, _scheme)),
    (("-",), _each(_OPTION, _option)),
    (("-u", "user"), _each(_CURL_USER, _last_group)),
    (("pass", "pwd", "secret", "token", "credential", "key"), hide_prose),
    (("@",), _each(_HOST_LEAK, _host)),
    (("=",), _each(_QUERY, _parameter)),
)
