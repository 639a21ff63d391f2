"""The hand-written words of the simulated model, kept in ``phrases.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def phrases() -> Mapping[str, Any]:
    """``reply`` by language; ``category``, ``urgency``, ``sentiment``: the words each is known by; ``stopwords`` and
    ``traditional`` for guessing languages; ``words`` and ``samples`` to draw texts from."""
    loaded: dict[str, Any] = json.loads((Path(__file__).parent / "phrases.json").read_text(encoding="utf-8"))
    return loaded
