"""The frames of a stored traceback: those of the application first. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FRAME = re.compile(r'^[ \t|+]*File "(?P<file>[^"\n]*)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
#: Marks of code that is not the application's: installed packages, Python's own, and the engine that ran the task.
_LIBRARY = re.compile(
    r"(?:^|[/\\])(?:site-packages|dist-packages|lib(?:64)?[/\\]python3[^/\\]*|tasks[/\\](?:engine|llm|lifecycle|errors))[/\\]|^<"
)
_SLASH = re.compile(r"[/\\]")
#: Frames shown at most; a recursion has a thousand alike.
MOST_FRAMES = 20


@dataclass(frozen=True)
class Frame:
    """One frame. ``code`` is the line of source, empty where the traceback has none."""

    file: str
    line: int
    function: str
    code: str

    @property
    def of_application(self) -> bool:
        """Whether the file is the application's own: not an installed package's, Python's or the engine's."""
        return _LIBRARY.search(self.file) is None

    @property
    def place(self) -> str:
        """The file by its last three parts, and the line."""
        parts = _SLASH.split(self.file)
        return f"{'/'.join(parts[-3:])}:{self.line}"


def frames(traceback: str) -> list[Frame]:
    """All frames in the order of the text: the most recent call last."""
    found = []
    lines = traceback.splitlines()
    for at, text in enumerate(lines):
        match = _FRAME.match(text)
        if match:
            below = lines[at + 1] if at + 1 < len(lines) else ""
            code = "" if _FRAME.match(below) or not below.startswith((" ", "\t", "|")) else below.strip()
            found.append(Frame(match["file"], int(match["line"]), match["function"] or "", code))
    return found


def application_frames(traceback: str) -> list[Frame]:
    """The frames of the application, the most recent call first, without repetitions of a recursion."""
    own = [frame for frame in reversed(frames(traceback)) if frame.of_application]
    return list(dict.fromkeys(own))[:MOST_FRAMES]
