"""The provider of the benchmarks, in a process of its own: ``… provider FILE`` writes its port into the file.

The model's name says how many chunks it answers with: ``bench-300``.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

from tests.chat import chat
from tests.provider import Reply, ScriptedProvider

#: Between two chunks, so that the client reads each by itself as from a model.
PAUSE = 0.004


def answer(request: Any, number: int) -> Reply:
    """A text of as many words as chunks are asked for."""
    chunks = int(request["model"].rpartition("-")[2])
    return chat(request, "lorem " * chunks, pieces=chunks, pause=PAUSE)


if __name__ == "__main__":
    with ScriptedProvider() as provider:
        provider.script(answer)
        Path(sys.argv[1]).write_text(str(provider.port))
        signal.sigwait([signal.SIGTERM])
