"""Secrets in a text that stand beside their name: ``password=…``, ``"api_key": "…"``, ``the password is …``.

The names are looked for in a copy in lower case of the same length, by their last word. Python's own engine runs here,
as it gives a match in a fraction of re2's time and an attacker chooses how many there are; so every repetition is
possessive or bounded, and a character is read a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tasks.errors.names import (
    CORE,
    MASKED,
    REACH,
    Strength,
    is_code,
    is_mixed,
    is_nothing,
    is_secret,
    is_tokenlike,
    is_variable_of_key,
    strength,
)

#: A piece to replace: where it begins and ends, and by what.
Piece = tuple[int, int, str]

# Python before 3.11.5 goes wrong where what is repeated possessively may fail in its middle (groups, alternatives), so
# only single characters are repeated so here. "One of these or none, for good" is written as (?:X|(?!X)).
_QUOTE = r"(?:\\{0,8}+[\"']|%22|%27|&quot;|&\#39;)"
_OPEN = f"(?:{_QUOTE}|(?!{_QUOTE}))"
_PREFIX = r"(?:[bu](?=\\*+[\"'])|(?![bu]\\*+[\"']))"
_SCHEMES = "(?:bearer|basic|token|apikey|digest|negotiate)"
#: Quoted text on one line, or over a few: the quote ends it that is escaped as its first one is.
_QUOTED = r"""
    "(?:[^"\\\n]++|\\[^\n])*" | '(?:[^'\\\n]++|\\[^\n])*'
  | "(?:[^"\\]|\\.){0,400}" | '(?:[^'\\]|\\.){0,400}'
  | \\"(?:[^"\\\n]++|\\\\\\["\\]|\\\\[^"\\\n]|\\[^"\\\n])*\\"
  | \\'(?:[^'\\\n]++|\\\\\\['\\]|\\\\[^'\\\n]|\\[^'\\\n])*\\'
  | \\{2,8}+"(?:[^"\\\n]++|\\++(?!")){0,400}\\{2,8}+" | \\{2,8}+'(?:[^'\\\n]++|\\++(?!')){0,400}\\{2,8}+'
"""
#: A name and what tells that its value follows; not where the value is masked already.
_NAME = re.compile(
    rf"""
    ({CORE})(s?)(?:[_-]?\d{{1,2}}(?!\d))?
    ({_OPEN}\s*+(?:[=\-]>|:=|[:=]|%3d|%3a)(?:\s|%20)*(?!\s|%20){_PREFIX}|{_QUOTE}\s*+,\s*+{_PREFIX})
    (?!{_OPEN}\[masked\])""",
    re.VERBOSE,
)


def _value_of(bare: str) -> re.Pattern[str]:
    return re.compile(
        rf"""
        (?P<quoted>{_QUOTED})
        |(?P<nest>[\[{{])(?=\s*+[\[{{"'\\\d])
        |(?P<open>{_OPEN})(?:(?P<scheme>{_SCHEMES}\ ++)|(?!{_SCHEMES}\ ))(?P<bare>{bare})
        """,
        re.VERBOSE | re.DOTALL,
    )


#: A value ends with ``&`` in a query, and with that in its code where all is URL-encoded or on a page; elsewhere both
#: may well be part of a password. Not cut off afterwards: what follows would be read again for each pair.
_VALUE = _value_of(r"""[^\s,;"'<>()\\{}]++""")
_VALUE_IN_QUERY = _value_of(r"""[^\s,;"'<>()\\{}&]++""")
_VALUE_IN_CODE = _value_of(r"""(?:[^\s,;"'<>()\\{}&%]++|%(?!26|22|27|2c|7d|0a|3b))+""")
#: ``api key 3f2a… invalid``, ``password is hunter2``, ``API key provided: …``.
_PROSE = re.compile(
    r"""
    (?P<name>pass(?:word|[ ]?phrase|code)|pwd|secret|token|credential
       |(?:api|access|secret|subscription|auth|account|private)[ ](?:key|token)|(?:api|access)[_-]?(?:key|token))
    (?:(?P<told>\ (?:provided|received|used|given|supplied|sent|value))
       |(?!\ (?:provided|received|used|given|supplied|sent|value)))
    (?P<link>\ (?:is|was|of):?\ |:\ |\ )
    (?:(?P<quoted>"[^"\n]{1,400}+"|'[^'\n]{1,400}+'|`[^`\n]{1,400}+`)|['"`]?+(?P<bare>[^\s'"`,;<>()\[\]{}]++))""",
    re.VERBOSE,
)
_LINE = re.compile(r"[ \t>]*(?:set-|proxy-)?")
_COOKIES = re.compile(r"(?:;?[ ]?[^\s;,\"'=\[\]]++=[^\s;,\"']*+)*")
_LATER_IN_LINE = re.compile(r"[^\n]*+")
_STRING = re.compile(r"\"([^\"\\\n]{8,400})\"(?!\s*+:)|'([^'\\\n]{8,400})'(?!\s*+:)")
#: Secrets found in one text before the rest of it is hidden as a whole: no real failure has as many, and who sends
#: them chooses how long masking takes.
MOST = 5_000
_MOST_NAMES = 4 * MOST
REST = f"{MASKED} and all that follows"
#: Characters of a list or an object under a secret's name that are looked through for its end.
_NEST, _WEAK_NEST = 2_000, 400
_IN_QUERY = re.compile(r"[?&][\w.\-]*\Z")


def lowered(text: str) -> str:
    """``text`` in lower case, each character at its place."""
    return text.lower() if text.isascii() else text.replace("\u0130", "I").lower()


def hide_pairs(text: str, low: str) -> str:
    """``text`` without the values beside names of secrets; ``low`` is the same in lower case."""
    return joined(text, _pairs(text, low))


def hide_prose(text: str, low: str) -> str:
    """``text`` without the secrets that a sentence tells."""
    return joined(text, (piece for match in _PROSE.finditer(low) if (piece := _told(text, match)) is not None))


def joined(text: str, pieces: Iterator[Piece]) -> str:
    """``text`` with each piece replaced; they come in order and do not overlap. After too many, all that follows is."""
    parts: list[str] = []
    at = 0
    for start, end, instead in pieces:
        if len(parts) >= 2 * MOST:
            return "".join((*parts, text[at:start], REST))
        parts += (text[at:start], instead)
        at = end
    return "".join((*parts, text[at:])) if parts else text


def _pairs(text: str, low: str) -> Iterator[Piece]:
    at = looked = 0
    while (name := _NAME.search(low, at)) is not None:
        at = name.end()
        said = _said(text, low, name)
        if said is Strength.NONE:
            continue
        looked += 1
        if looked > _MOST_NAMES:
            yield name.start(), len(text), REST
            return
        piece = _header_line(low, name) or _piece(text, low, name, said)
        if piece is not None:
            yield piece
            at = piece[1]


def _said(text: str, low: str, name: re.Match[str]) -> Strength:
    start, core, plural = name.start(), name[1], name[2]
    if core == "token" and plural:
        return Strength.NONE
    said = strength(low[max(0, start - REACH) : start], core)
    if said is Strength.NONE and core == "key" and not plural:
        variable = text[max(0, start - REACH) : start + 3].rpartition(" ")[2]
        return Strength.WEAK if is_variable_of_key(variable) else said
    return said


def _header_line(low: str, name: re.Match[str]) -> Piece | None:
    """All of the line ``Cookie: …`` or ``Authorization: …``."""
    if name[1] not in {"cookie", "authorization"} or name[3].strip(" ") != ":":
        return None
    start, value = name.start(), name.end()
    begin = max(low.rfind("\n", max(0, start - REACH), start) + 1, start - REACH, 0)
    is_line = begin == 0 or low[begin - 1] == "\n"
    found = _LATER_IN_LINE.match(low, value)
    if not is_line or not _LINE.fullmatch(low, begin, start) or not found or not found.group().strip():
        return None
    return value, found.end(), MASKED


def _piece(text: str, low: str, name: re.Match[str], said: Strength) -> Piece | None:
    """What is to be replaced of the value behind ``name``."""
    value = _pattern_after(low, name).match(low, name.end())
    if value is None:
        return None
    if value.lastgroup == "quoted":
        return _quoted(text, value, said)
    return _nested(text, value, said) if value.lastgroup == "nest" else _bare(text, low, name, value, said)


def _pattern_after(low: str, name: re.Match[str]) -> re.Pattern[str]:
    if name[3].startswith("%") or low.startswith(("%22", "%27", "&quot;", "&#39;"), name.end()):
        return _VALUE_IN_CODE
    is_query = _IN_QUERY.search(low, max(0, name.start() - REACH), name.start()) is not None
    return _VALUE_IN_QUERY if is_query else _VALUE


def _quoted(text: str, match: re.Match[str], said: Strength) -> Piece | None:
    start, end = match.span()
    quoted = text[start:end]
    size = len(quoted) - len(quoted.lstrip("\\")) + 1
    return (start + size, end - size, MASKED) if is_secret(quoted[size:-size], said) else None


def _nested(text: str, match: re.Match[str], said: Strength) -> Piece | None:
    """A list or an object: all of it, or, beside a weak name, its texts that look like secrets."""
    start = match.start()
    if said is Strength.STRONG:
        return start, _end_of_nest(text, start), MASKED
    end = max(text.find("}", start, start + _WEAK_NEST), text.find("]", start, start + _WEAK_NEST))
    hidden = _STRING.sub(_without_tokenlike, text[start:end]) if end > 0 else ""
    return (start, end, hidden) if hidden and hidden != text[start:end] else None


def _end_of_nest(text: str, start: int) -> int:
    """Behind the bracket that closes the one at ``start``; of an endless one, the part that is looked through."""
    depth, stop = 0, min(len(text), start + _NEST)
    for at in range(start, stop):
        character = text[at]
        depth += (character in "[{") - (character in "]}")
        if depth == 0:
            return at + 1
    return stop


def _without_tokenlike(match: re.Match[str]) -> str:
    value, quote = match[1] or match[2], match[0][0]
    return f"{quote}{MASKED}{quote}" if is_tokenlike(value) else match[0]


def _bare(text: str, low: str, name: re.Match[str], match: re.Match[str], said: Strength) -> Piece | None:
    start, end = match.span("bare")
    if name[1] == "cookie" and name[3].strip(" ") == ":" and (found := _COOKIES.match(low, start)):
        end = max(end, found.end())
    value = text[start:end]
    is_sure = said is Strength.STRONG or match["scheme"] is not None
    if value[:1] in {"", "[", "("} or is_code(value) or (name[2] and value.isdigit()):
        return None
    if not is_secret(value, Strength.STRONG if is_sure else said):
        return None
    is_cut_off = is_sure and match["open"] in {'"', "'"}
    return start, _end_of_line(text, end) if is_cut_off else end, MASKED


def _end_of_line(text: str, at: int) -> int:
    """Where a text that is quoted and cut off ends: with its line."""
    found = text.find("\n", at)
    return found if found >= 0 else len(text)


def _told(text: str, match: re.Match[str]) -> Piece | None:
    """A secret in a sentence: what is quoted, or certain after ``API key provided:``, else where it is no word."""
    name, link = match["name"], match["link"]
    start, end = match.span("quoted" if match["quoted"] else "bare")
    if match["quoted"]:
        start, end = start + 1, end - 1
    value = text[start:end].rstrip(".!?:")
    if is_nothing(value):
        return None
    is_door = name not in {"token", "secret", "credential"}
    if match["told"] and link in {": ", " is "} and not name.startswith("pass"):
        found = is_door
    elif link in {" ", ": "}:
        found = is_door and len(value) >= 12 and is_mixed(value)
    else:
        is_password = name.startswith(("pass", "pwd"))
        found = (is_password and bool(match["quoted"])) or (is_mixed(value) and (len(value) >= 8 or is_password))
    return (start, start + len(value), MASKED) if found else None
