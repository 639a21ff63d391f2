"""Freeing a text of what differs from one occurrence of a fault to the next: ids, numbers, hosts, times, quoted values.

What tells faults apart stays: errno, HTTP status, SQLSTATE, provider codes, signals, names of models, tools, fields and
relations, and every word in whatever script.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import re2

from tasks.errors.text import without_frames

#: Characters of normalised text kept; beyond lies what a fault quotes, not what it is.
KEPT = 2_000

#: Digits that stay are moved out of reach of the number rules, then back.
_HIDE = str.maketrans("0123456789", "".join(chr(0xE030 + digit) for digit in range(10)))
_SHOW = str.maketrans("".join(chr(0xE030 + digit) for digit in range(10)), "0123456789")

_MODEL = re2.compile(
    r"(?i)\b(?:[a-z0-9_]+[./]){0,2}(?:gpt|chatgpt|claude|gemini|gemma|llama|codellama"
    r"|mistral|mixtral|codestral|ministral|qwen|qwq|deepseek|phi"
    r"|command|titan|nova|glm|kimi|moonshot|doubao|ernie|hunyuan|baichuan|embed"
    r"|embedding|text-embedding|whisper|tts|dall-e"
    r"|grok|sonnet|opus|haiku|falcon|yi|jamba|starcoder|minimax|abab|step|sonar)-?[\w.\-]*(?::[\w.]+)?"
    r"|\bo[134](?:-mini|-preview|-pro)?\b"
)
_KEPT_NUMBERS = re2.compile(
    r"(?i)(?:\b(?:errno|winerror|error|err|code|status|statuscode|http|sqlstate"
    r"|signal|exitcode|errcode|status_code|grpc_status"
    r"|exit(?:ed)?(?: with)?(?: code| status)?)(?: code)?['\"]?[ :=(\[#]{0,3}(?:of )?['\"]?-?\d{1,6}\b"
    r"|(?:^|\|) ?\(?[1-5]\d\d(?:\b|:)|\b[45]\d\d (?:server|client) error|\(\d{4}, ['\"]"
    r"|\bORA-\d+|\bE\d{5}\b"
    r"|\bTLSv?\d(?:[._]\d)?|\b(?:utf|sha|base|int|float|ipv|h)-?\d{1,3}\b|\b0x00\b)"
)

_PLURAL = re.compile(
    r"(sub-exception|error|second|token|message|request|image|file|time|attempt|minute|hour|day|tool call)s\b",
    re.IGNORECASE,
)

_Rule = tuple[Any, Callable[[Any], str]]


def _rule(pattern: str, replacement: str | Callable[[Any], str]) -> _Rule:
    r"""A compiled rule. ``\\1`` in a text is the first group; a call is many times cheaper than re2's own templates."""
    compiled = re2.compile(pattern)
    if not isinstance(replacement, str):
        return compiled, replacement
    before, has_group, after = replacement.partition("\\1")
    if not has_group:
        return compiled, lambda match: replacement
    return compiled, lambda match: f"{before}{match.group(1) or ''}{after}"


def normalise(text: str) -> str:
    """``text`` as it reads for every occurrence of the same fault; at most 2,000 characters."""
    return singular(readable(text))


def singular(text: str) -> str:
    """One error and two errors are the same fault. Not for people's eyes: it takes any such word for a count."""
    return _PLURAL.sub(lambda match: match.group(1), text)


def readable(text: str) -> str:
    """``text`` without what varies, for people: its words are as they were said."""
    text = _prose(text.replace("\r\n", "\n"))
    for pattern, replacement in _DROPPED:
        text = pattern.sub(replacement, text)
    text = _URL.sub(_address, text)
    text = _MODEL.sub(lambda match: match.group(0).translate(_HIDE), text)
    text = _KEPT_NUMBERS.sub(lambda match: match.group(0).translate(_HIDE), text)
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return text.translate(_SHOW).strip(" \n\t.,;:-")[:KEPT]


def _prose(text: str) -> str:
    """The words before a traceback inside the text, or the text without its frames where nothing stands before it."""
    before, found, after = text.partition("Traceback (most recent call last):")
    if not found:
        return text
    return before if any(character.isalpha() for character in before) else without_frames(after)


def _address(match: Any) -> str:
    """An address without host and query; its path tells one operation from another."""
    scheme, rest = match.group(1), match.group(2).rstrip(".,;:")
    path = rest.partition("?")[0].partition("/")[2]
    return f"{scheme}://<host>/{_segments(path)}{match.group(2)[len(rest) :]}"


def _path(match: Any) -> str:
    return _segments(match.group(0))


def _segments(path: str) -> str:
    """``a/b3/c.pdf`` as ``a/<id>/c.pdf``: what carries a digit is named by a machine."""
    return "/".join(_segment(part) for part in path.split("/"))


def _segment(part: str) -> str:
    if not any(character.isdigit() for character in part):
        return part
    stem, dot, ending = part.rpartition(".")
    return f"<id>.{ending}" if dot and stem and ending.isalpha() and len(ending) <= 5 else "<id>"


def _token(match: Any) -> str:
    """``<id>`` for what a machine made up: letters and digits that take turns, or a long mix."""
    token = match.group(0)
    digits = sum(character.isdigit() for character in token)
    if not digits or not any(character.isalpha() and character.isascii() for character in token):
        return str(token)
    turns = sum(a.isdigit() != b.isdigit() for a, b in pairwise(token))
    return (
        "<id>" if (turns >= 2 and len(token) >= 6) or (len(token) >= 16 and digits >= 3) or digits >= 6 else str(token)
    )


def _named_value(match: Any) -> str:
    """``name='any thing'`` as ``name=<value>``; the sentence of a message field stays."""
    name, separator, value = match.groups()
    return str(match.group(0)) if name.lower() in _SENTENCES else f"{name}{separator}{_value(value)}"


def _worded_value(match: Any) -> str:
    """``date 'next Tuesday'`` as ``date <value>``; whole sentences stay."""
    word, value = match.groups()
    return str(match.group(0)) if value.count(" ") > 5 else f"{word} {_value(value)}"


def _value(quoted: str) -> str:
    """A quoted value: a name stays as it is, of a path its names stay, anything else is ``<value>``."""
    inner = quoted[1:-1]
    if not inner or _NAME.fullmatch(inner):
        return quoted
    return f"{quoted[0]}{_segments(inner)}{quoted[0]}" if _PATH.fullmatch(inner) else "<value>"


_URL = re2.compile(r"(?i)\b([a-z][a-z0-9+.\-]{1,20})://([^\s'\"<>)\]}]+)")
_NAME = re2.compile(r"[A-Za-z_][\w.\-\[\]<>]{0,79}")
_PATH = re2.compile(r"(?:[A-Za-z]:|\.{0,2})?(?:[/\\][\w.@%+<>\-]+)+[/\\]?")
_SENTENCES = frozenset({"message", "msg", "detail", "error", "reason", "raw", "description", "type", "code", "title"})

#: What does not belong to the fault: bound values, hints, what the model or the user wrote.
_DROPPED: tuple[_Rule, ...] = (
    _rule(r"(?s)\n?\[SQL: .*?\](?:\n|$)", "\n"),
    _rule(r"(?s)\[parameters: .*?\](?:\n|$)", ""),
    _rule(r"\(Background on this error at: [^)]*\)", ""),
    _rule(r" ?\(reached max retries: \d+\)", ""),
    _rule(r"(?m)\n?^During task with name .*$", ""),
    _rule(
        r"(?i)for (?:further information|troubleshooting|more information check|more information),? ?"
        r"(?:on this error,? )?(?:visit|see|check|head to)?:? \S+",
        "",
    ),
    _rule(r"(?s), input_value=.*?, input_type=\w+", ""),
    _rule(r"'args': \{[^{}]*\}", "'args': {}"),
    _rule(r"(?s)<completion>.*?</completion>", "<output>"),
    _rule(
        r"(?is)((?:parse (?:llm |model |the )?output|invalid json output|from completion"
        r"|could not parse response|raw output|model output|failed_generation['\"]?)[:=]? ?)\S.*",
        r"\1<output>",
    ),
    _rule(r"(?i)(with identical arguments |arguments:? )\{[^{}]*\}", r"\1<value>"),
    _rule(r"(?i)((?:key|values?) \([^)]*\)=)\([^)]*\)", r"\1<value>"),
    _rule(r"_ssl\.c:\d+", "_ssl.c"),
    _rule(r"Command '\[['\"]([^'\"]+)['\"].*?\]'", r"Command \1"),
    _rule(r"Command '([^' ]+) [^']*'", r"Command \1"),
    _rule(r"['\"](?:<[\w.]+ object at 0x[0-9a-f]+>|\w+Connection\([^)]*\)): ([^'\"]*)['\"]", r"\1"),
    _rule(r"Multiple exceptions: ", ""),
    _rule(
        r"(?:\[Errno -?\d+\] )?Connect call failed \([^)]*\)"
        r"(?:, (?:\[Errno -?\d+\] )?Connect call failed \([^)]*\))*",
        "Connect call failed",
    ),
)

#: What varies, in the order in which it is looked for: the longer form before its parts.
_VARYING: tuple[_Rule, ...] = (
    _rule(r"\[(?:masked|email|phone|card|iban)\]", "<value>"),
    _rule(r"(?i)\b(?:[a-z]{2,12}[-_])?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
    _rule(r"\bdatetime\.datetime\([^)]*\)", "<time>"),
    _rule(
        r"\b\d{4}-\d{2}-\d{2}(?:(?:T| |, | at )\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?(?: ?(?:Z"
        r"|UTC|GMT)|[+\-]\d{2}:?\d{2})?\b",
        "<time>",
    ),
    _rule(
        r"(?i)\b(?:(?:mon|tue|wed|thu|fri|sat|sun)\w*,? )?(?:\d{1,2} )?(?:jan|feb"
        r"|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d{1,2}?,? ?\d{4}\b",
        "<time>",
    ),
    _rule(r"\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?(?:AM|PM|UTC|GMT|Z))?\b", "<time>"),
    _rule(r"(?i)\bipv[46]:\S+", "<host>"),
    _rule(r"['\"][0-9a-fA-F:]*::[0-9a-fA-F:.]*['\"]", "<host>"),
    _rule(r"\('[0-9a-fA-F.:]+', \d+(?:, \d+, \d+)?\)", "<host>"),
    _rule(r"\[[0-9a-fA-F:]*::?[0-9a-fA-F:.]*\](?::\d+)?", "<host>"),
    _rule(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{1,5})?\b", "<host>"),
    _rule(r"(?i)\b(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{1,4}\b", "<host>"),
    _rule(
        r"(?i)((?:host|server|hostname|resolve|address|peer)(?: name| at)?[ =:]+)['\"][^'\"\s]+['\"]",
        r"\1<host>",
    ),
    _rule(
        r"(?i)\b((?:connecting to|connect to|host|to host|peer|server at|connection to) )"
        r"[a-z0-9][a-z0-9_.\-]*:\d{2,5}\b",
        r"\1<host>",
    ),
    _rule(
        r"(?i)\b(?:[a-z0-9](?:[a-z0-9\-]*[a-z0-9])?\.)+(?:[a-z0-9\-]+:\d{2,5}|(?:com"
        r"|ai|net|org|io|cn|dev|local|svc|internal|example|cloud|app|co|de|eu|uk"
        r"|lan|corp|test|tech)\b(?::\d{1,5})?)",
        "<host>",
    ),
    _rule(r"(?i)\blocalhost(?::\d{1,5})?\b", "<host>"),
    _rule(r"['\"]<host>['\"]|<host>(?: \(<host>\))|port=\d+|port \d+", "<host>"),
    _rule(r"(?i)<host>(?:,? \(?<host>\)?)+", "<host>"),
    _rule(r"(?:/[\w.@%+\-]+){2,}/?", _path),
    _rule(r"\b0x[0-9a-fA-F]{2,}\b", "<address>"),
    _rule(r"(\w+)(['\"]?\s*[:=]\s*)('[^'\n]*'|\"[^\"\n]*\")", _named_value),
    _rule(r"([A-Za-z]+) ('[^'\n]{0,200}'|\"[^\"\n]{0,200}\")", _worded_value),
    _rule(
        r"(?i)\b((?:after|blocks?|messages?|ids?|calls?|item): )[\w\-]*\d[\w\-]*(?:, [\w\-]*\d[\w\-]*)*",
        r"\1<id>",
    ),
    _rule(
        r"\b(?:req|chatcmpl|resp|rs|msg|call|toolu|toolu_bdrk|run|thread|asst|org"
        r"|user|proj|file|item|fc|gen|ak|sess|job|batch|evt|task|cmpl)[-_][A-Za-z0-9_\-]*\d[A-Za-z0-9_\-]*",
        "<id>",
    ),
    _rule(r"\b(?:org|proj|user|ak|sess|acct|cus)[-_][A-Za-z0-9]{10,}", "<id>"),
    _rule(r"[\w\-]*(?:\.\.\.|…|\*{3,})[\w\-]+", "<value>"),
    _rule(r"[A-Za-z0-9_\-]{6,}", _token),
    _rule(r"(?i)[-+]?\b\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?\s?(?:[KMGTP]i?B|bytes?)\b", "<size>"),
    _rule(
        r"(?i)\b(?:\d+(?:\.\d+)?(?:ms|us|ns|s|m|h|d))+\b|\b\d+(?:\.\d+)? ?(?:milliseconds?"
        r"|seconds?|secs?|minutes?|mins?|hours?|days?|秒|分钟|小时)",
        "<duration>",
    ),
    _rule(r"(?i)[-+]?\b\d[\d,]*(?:\.\d+)*(?:e[-+]?\d+)?", "<n>"),
    _rule(r"\[<n>\]|\.<n>\b", ".<n>"),
    _rule(r"<id>(?:, ?<id>)+", "<id>"),
    _rule(r"<n>(?:, ?<n>)+", "<n>"),
    _rule(r"\s+", " "),
)
