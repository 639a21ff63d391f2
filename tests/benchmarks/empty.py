"""Empty tasks per second, until each engine's own store shows all done; two worker processes each."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

from tasks.embedded.server import EmbeddedServer
from tests.benchmarks import engines
from tests.benchmarks.bench import database

WORKERS = 2
#: (engine, tasks in the full size): so that each runs some seconds.
SIZES: tuple[tuple[str, Callable[[str], engines.Engine], int], ...] = (
    ("redrive", engines.Redrive, 40_000),
    ("pgqueuer", engines.pgqueuer, 40_000),
    ("procrastinate", engines.procrastinate, 4_000),
    ("django-q2", engines.Stock, 2_000),
)


def measure(running: EmbeddedServer, *, rounds: int, share: float, only: str = "") -> Iterator[str]:
    """Lines of the report. ``share``: of the full sizes. Rounds alternate, so that a slow moment meets all."""
    found: dict[str, list[float]] = {name: [] for name, _, _ in SIZES if not only or name == only}
    for number in range(rounds):
        for name, make, full in SIZES:
            if name not in found:
                continue
            count = max(200, int(full * share))
            engine = make(database(running, f"{name}-{number}"))
            engine.install()
            engine.fill(count)
            rate = count / engine.drain(WORKERS)
            found[name].append(rate)
            yield f"round {number + 1}: {name} {count} tasks, {rate:,.0f}/s"
    medians = {name: statistics.median(rates) for name, rates in found.items() if rates}
    for name, rate in medians.items():
        ratio = f" (redrive is {medians['redrive'] / rate:.2f} times that)" if "redrive" in medians else ""
        yield f"{name}: {rate:,.0f} tasks/s{ratio}"
