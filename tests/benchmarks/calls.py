"""Prompt calls through the real path: what one costs the workers, in CPU time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator

from tasks.embedded.server import EmbeddedServer
from tests.benchmarks.bench import Store, database, processes, run
from tests.benchmarks.engines import Redrive
from tests.benchmarks.tree import cpu_seconds

WORKERS, SLOTS = 1, 50
#: (chunks of an answer, calls in the full size)
SIZES = ((10, 1_500), (300, 600))
CONFIG = """
[[provider]]
name = "bench"
base_url = "http://127.0.0.1:{port}/v1"

[[kind]]
name = "bench.prompt"
provider = "bench"
model = "bench-{chunks}"
prompt = "Summarise: {{{{ text }}}}"
"""


def measure(running: EmbeddedServer, *, rounds: int, share: float, only: str = "") -> Iterator[str]:
    """Streamed, each chunk sent by itself."""
    for chunks, full in SIZES:
        for number in range(rounds):
            yield _one(running, f"calls-{chunks}-{number}", chunks, max(50, int(full * share)))


def _one(running: EmbeddedServer, name: str, chunks: int, count: int) -> str:
    engine = Redrive(database(running, name), slots=SLOTS)
    engine.install()
    with (
        tempfile.NamedTemporaryFile("r") as port,
        tempfile.NamedTemporaryFile("w", suffix=".toml") as file,
        processes([["-m", "tests.benchmarks.workload.provider", port.name]]),
    ):
        file.write(CONFIG.format(port=_written(port.name), chunks=chunks))
        file.flush()
        run("manage.py", "loadconfig", file.name, env=engine.env)
        engine.inside("prompts", {"count": count, "kind": "bench.prompt"})
        store = Store(engine.dsn)
        with engine.held(store, "bench.prompt", WORKERS) as (pid, release):
            before = cpu_seconds(pid)
            release()
            store.wait("SELECT NOT EXISTS (SELECT 1 FROM tasks_task WHERE finished_at IS NULL)")
            spent = cpu_seconds(pid) - before
        (good,) = store.ask("SELECT count(*) FROM tasks_task WHERE status = 'succeeded'")[0]
        store.close()
    if good != count:
        raise RuntimeError(f"{good} of {count} calls succeeded")
    return (
        f"prompt calls of {chunks} chunks: {spent / count * 1000:.1f} ms of CPU a call,"
        f" {count / spent:.0f} calls a second and core ({count} calls)"
    )


def _written(path: str) -> int:
    """The port that the provider writes once it listens."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with open(path) as file:
            if text := file.read().strip():
                return int(text)
        time.sleep(0.05)  # another process writes it
    raise TimeoutError("the provider did not start")
