"""What the demo keeps in the data directory: its port, and how far it is through the tickets."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any


class DemoPlace:
    """``demo.json`` in ``folder``, which is made if missing: ``port``, and ``next``, the number of the next task."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._state = folder / "demo.json"

    def read(self, name: str) -> int:
        """A kept number, or 0. What cannot be read counts as not kept: the demo starts afresh."""
        value = self._load().get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0

    def keep(self, **numbers: int) -> None:
        """Keeps numbers for the next start."""
        beside = self._state.with_suffix(".new")
        beside.write_text(json.dumps({**self._load(), **numbers}), encoding="utf-8")
        os.replace(beside, self._state)

    def listen(self) -> socket.socket:
        """A socket on the port of last time if it is free, else on a free one, which is then kept."""
        port = self.read("port")
        try:
            listener = socket.create_server(("127.0.0.1", port if port < 65_536 else 0), backlog=1024)
        except OSError:
            listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.keep(port=listener.getsockname()[1])
        return listener

    def _load(self) -> dict[str, Any]:
        try:
            value = json.loads(self._state.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}
