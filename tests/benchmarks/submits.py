"""How many tasks a second one process submits: one by one, and a thousand a call."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tasks.embedded.server import EmbeddedServer
from tests.benchmarks.bench import database
from tests.benchmarks.engines import Redrive

ONE_BY_ONE, IN_BULK = 2_000, 50_000


def measure(running: EmbeddedServer, *, rounds: int, share: float, only: str = "") -> Iterator[str]:
    """While no worker runs."""
    single, bulk = [], []
    for number in range(rounds):
        engine = Redrive(database(running, f"submits-{number}"))
        engine.install()
        single.append(engine.inside("one_by_one", max(100, int(ONE_BY_ONE * share))))
        bulk.append(engine.inside("in_bulk", max(1_000, int(IN_BULK * share))))
    yield f"submit: one by one {statistics.median(single):,.0f}/s, in bulk {statistics.median(bulk):,.0f}/s"
