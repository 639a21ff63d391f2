"""Many async handlers that wait at once, as for a model's answer: how near to the ideal, and how much memory."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tasks.embedded.server import EmbeddedServer
from tests.benchmarks.bench import Store, database
from tests.benchmarks.engines import Redrive
from tests.benchmarks.tree import PeakMemory

WORKERS, SLOTS = 2, 500
TASKS, SECONDS = 4_000, 2.0


def measure(running: EmbeddedServer, *, rounds: int, share: float, only: str = "") -> Iterator[str]:
    """4,000 handlers of 2 s on two processes of 500 slots."""
    count = max(WORKERS * SLOTS, int(TASKS * share))
    ideal = count * SECONDS / (WORKERS * SLOTS)
    for number in range(rounds):
        engine = Redrive(database(running, f"sleepers-{number}"), slots=SLOTS)
        engine.install()
        engine.inside("sleepers", {"count": count, "seconds": SECONDS})
        store = Store(engine.dsn)
        with engine.held(store, "bench.sleep", WORKERS) as (pid, release), PeakMemory(pid) as memory:
            began = time.monotonic()
            release()
            took = store.wait("SELECT NOT EXISTS (SELECT 1 FROM tasks_task WHERE finished_at IS NULL)") - began
        store.close()
        yield (
            f"sleepers round {number + 1}: {count} handlers of {SECONDS:g} s in {took:.2f} s,"
            f" {took / ideal:.2f} of the ideal {ideal:g} s; peak PSS of the tree {memory.mib:.0f} MiB"
        )
