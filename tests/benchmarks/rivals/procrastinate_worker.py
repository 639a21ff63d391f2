"""procrastinate 3.10: ``install DSN``, ``fill DSN COUNT``, ``work DSN``."""

from __future__ import annotations

import asyncio
import sys

from procrastinate import App, PsycopgConnector

CONCURRENCY = 50
FILL = 1_000


def app(dsn: str) -> App:
    """The app with its one task."""
    made = App(connector=PsycopgConnector(conninfo=dsn, min_size=2, max_size=10))

    @made.task(name="empty")
    async def empty() -> None:
        """Nothing."""

    return made


async def install(dsn: str) -> None:
    """Its tables."""
    async with app(dsn).open_async() as engine:
        await engine.schema_manager.apply_schema_async()


async def fill(dsn: str, count: int) -> None:
    """So many jobs."""
    async with app(dsn).open_async() as engine:
        task = engine.tasks["empty"]
        for start in range(0, count, FILL):
            await task.batch_defer_async(*({} for _ in range(min(FILL, count - start))))


async def work(dsn: str) -> None:
    """One worker process; what is done is kept, as its default is."""
    async with app(dsn).open_async() as engine:
        await engine.run_worker_async(concurrency=CONCURRENCY, delete_jobs="never")


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    if verb == "fill":
        asyncio.run(fill(arguments[0], int(arguments[1])))
    else:
        asyncio.run({"install": install, "work": work}[verb](arguments[0]))
