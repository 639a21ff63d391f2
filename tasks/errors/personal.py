"""Personal data in texts, hidden on display only: e-mail addresses, phone, card and bank account numbers."""

from __future__ import annotations

import re
from typing import Any

import re2

# Python's own engine: a match costs it a fraction of re2's, and every repetition here is bounded or possessive.
_EMAIL = re.compile(r"(?<!\w)([^\W_][\w.%+\-]{0,254}+)@([^\W_][\w\-]{0,254}+(?:\.[\w\-]{1,63}+){1,20})")
_DOMAIN = re.compile(r".*\.[^\W\d_]{2,}\b")
#: An address up to the name of its user: it tells which account is meant, and stays.
_IN_ADDRESS = re.compile(r"://[^\s/]*\Z")
_EDGE = r"(^|[\s'\"(\[{:=,;<>|/]|：|，|（)"
_END = r"($|[\s'\")\]},;.!?<>|/]|，|。|）)"
_INTERNATIONAL = re2.compile(_EDGE + r"(\+[1-9]\d{0,2}(?:[ .\-/]{0,3}\(?\d{1,5}\)?){2,7})" + _END)
_NATIONAL = re2.compile(
    _EDGE
    + r"(\(\d{3}\) ?\d{3}[\-. ]\d{4}|\d{3}[\-.]\d{3}[\-.]\d{4}|\(?0\d{2,4}\)?(?: ?[/\-] ?| )\d{2,}(?:[ \-]?\d{2,}){0,4}"
    r"|1[3-9]\d[ \-]\d{4}[ \-]\d{4}|00[1-9]\d{0,2}(?: ?\d{2,5}){2,5})" + _END
)
_SPOKEN = re2.compile(
    r"(?i)((?:phone|tel|telefon|telephone|mobile|mobil|handy|fax|sms|whatsapp|cell|手机|电话|联系|号码)[a-z_]*\W{1,6}"
    r"(?:[a-z_]+\W{1,3}){0,2}?)(\+?\d[\d \-/().]{5,18}\d)\b"
)
_MOBILE = re2.compile(r"(['\"(])(1[3-9]\d{9})(['\")])")
_CARD = re2.compile(r"\b(\d(?:[ \-]?\d){12,18})\b")
_IBAN = re2.compile(r"\b([A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?)\b")
_CARD_STARTS = (
    "4",
    "51",
    "52",
    "53",
    "54",
    "55",
    "22",
    "23",
    "24",
    "25",
    "26",
    "27",
    "34",
    "37",
    "35",
    "36",
    "30",
    "38",
    "6",
)


def hide(text: str) -> str:
    """``text`` with personal data replaced by ``[email]``, ``[phone]``, ``[card]`` and ``[iban]``."""
    if "@" in text:
        text = _EMAIL.sub(_email, text)
    text = _IBAN.sub(_iban, text)
    text = _CARD.sub(_card, text)
    for pattern in (_INTERNATIONAL, _NATIONAL):
        text = pattern.sub(_phone, text)
    text = _MOBILE.sub(r"\1[phone]\3", text)
    return str(_SPOKEN.sub(_spoken, text))


def _email(match: re.Match[str]) -> str:
    domain = _DOMAIN.match(match[2])
    before = match.string[max(0, match.start() - 255) : match.start()]
    if domain is None or match[1] == "git" or ("://" in before and _IN_ADDRESS.search(before)):
        return match[0]
    return f"[email]{match[2][domain.end() :]}"


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdigit())


def _phone(match: Any) -> str:
    number = match.group(2)
    enough = 8 <= len(_digits(number)) <= 15
    return f"{match.group(1)}[phone]{match.group(3)}" if enough else str(match.group(0))


def _spoken(match: Any) -> str:
    enough = 7 <= len(_digits(match.group(2))) <= 15
    return f"{match.group(1)}[phone]" if enough else str(match.group(0))


def _card(match: Any) -> str:
    number = _digits(match.group(1))
    return "[card]" if number.startswith(_CARD_STARTS) and _passes_luhn(number) else str(match.group(0))


def _passes_luhn(number: str) -> bool:
    doubled = [int(digit) * (2 if at % 2 else 1) for at, digit in enumerate(reversed(number))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _iban(match: Any) -> str:
    """The check digits tell an account number from other capitals and digits."""
    text = match.group(1).replace(" ", "")
    moved = text[4:] + text[:4]
    number = "".join(str(int(character, 36)) for character in moved)
    return "[iban]" if 15 <= len(text) <= 34 and int(number) % 97 == 1 else str(match.group(0))
