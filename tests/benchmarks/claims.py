"""What a claim costs beside many rows that it must not feel, against an empty table."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.embedded.server import EmbeddedServer
from tests.benchmarks.bench import database
from tests.benchmarks.engines import Redrive

FINISHED, DELAYED, PAUSED = 5_000_000, 200_000, 200_000
ROUNDS_EACH = 40


def measure(running: EmbeddedServer, *, rounds: int, share: float, only: str = "") -> Iterator[str]:
    """Rounds alternate between the two databases."""
    tables = {}
    for name in ("empty", "full"):
        tables[name] = Redrive(database(running, f"claims-{name}"))
        tables[name].install()
    sizes = {"finished": int(FINISHED * share), "delayed": int(DELAYED * share), "paused": int(PAUSED * share)}
    rows = tables["full"].inside("crowd", sizes)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in tables}
    for _ in range(rounds):
        for name, engine in tables.items():
            found[name].append(engine.inside("claims", {"rounds": ROUNDS_EACH}))
    for claimed in ("none", "1", "50"):
        empty, full = (min(times[claimed] for times in found[name]) for name in ("empty", "full"))
        yield f"claim of {claimed}: empty table {empty:.2f} ms, beside {rows:,} rows {full:.2f} ms, {full / empty:.2f}x"
