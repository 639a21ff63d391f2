"""From ``submit`` to the first line of the handler, on idle workers: woken by NOTIFY, and by polling alone."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.embedded.server import EmbeddedServer
from tests.benchmarks.bench import Store, database
from tests.benchmarks.engines import Redrive

WORKERS = 2
#: (REDRIVE_NOTIFY, tasks, least and most seconds between two)
WAYS = (("on", 400, (0.15, 0.4)), ("off", 100, (0.1, 1.2)))


def measure(running: EmbeddedServer, *, rounds: int, share: float, only: str = "") -> Iterator[str]:
    """One task at a time."""
    for notify, full, pause in WAYS:
        engine = Redrive(database(running, f"latency-{notify}"), slots=50)
        engine.env["REDRIVE_NOTIFY"] = notify
        engine.install()
        store = Store(engine.dsn)
        with engine.held(store, "bench.empty", WORKERS):
            found = sorted(engine.inside("latencies", {"count": max(20, int(full * share)), "pause": pause}))
        store.close()
        half, most = found[len(found) // 2], found[int(len(found) * 0.99)]
        yield (
            f"submit to start, REDRIVE_NOTIFY={notify}: p50 {half * 1000:.1f} ms, p99 {most * 1000:.1f} ms"
            f" ({len(found)} tasks)"
        )
