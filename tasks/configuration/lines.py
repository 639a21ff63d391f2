"""On which line of a TOML file each row and key stands: ``tomllib`` tells only the values.

Meant for text that ``tomllib`` has accepted; then only strings over several lines need care, since they may hold
anything, a header too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HEADER = re.compile(r"""\s*\[\[?\s*["']?([A-Za-z0-9_.\-]+)["']?\s*\]""")
_KEY = re.compile(r"""\s*["']?([A-Za-z0-9_\-]+)["']?\s*=""")
_TOKEN = re.compile(r"""\"\"\"|'''|"(?:[^"\\]|\\.)*"|'[^']*'|#.*""")
_END = {'"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"""'), "'''": re.compile(r"(?:[^']|'(?!''))*'''")}


@dataclass
class Lines:
    """The lines of one table's header and keys, counted from 1; ``header`` 0 is the part before the first table."""

    header: int = 0
    keys: dict[str, int] = field(default_factory=dict)


def find_lines(text: str) -> dict[str, list[Lines]]:
    """The lines of every ``[[table]]`` by its name, in the order of the file; the top of the file under ``""``."""
    current = Lines()
    found: dict[str, list[Lines]] = {"": [current]}
    fence = ""
    # Not splitlines(): TOML's lines end with a line feed and nothing else, and U+2028 in a string ends none.
    for number, line in enumerate(text.split("\n"), 1):
        if not fence:
            if header := _HEADER.match(line):
                current = Lines(number)
                found.setdefault(header[1], []).append(current)
            elif key := _KEY.match(line):
                current.keys.setdefault(key[1], number)
        fence = _open_fence(line, fence)
    return found


def _open_fence(line: str, fence: str) -> str:
    """The quotes of the string over several lines that is open after ``line``, given what was open before it."""
    at = 0
    while True:
        if fence:
            end = _END[fence].match(line, at)
            if not end:
                return fence
            at, fence = end.end(), ""
        token = _TOKEN.search(line, at)
        if not token:
            return ""
        at = token.end()
        fence = token[0] if token[0] in _END else ""
