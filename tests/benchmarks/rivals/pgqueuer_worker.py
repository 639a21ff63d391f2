"""pgqueuer 1.6: ``install DSN``, ``fill DSN COUNT``, ``work DSN``."""

from __future__ import annotations

import asyncio
import sys

import asyncpg
from pgqueuer import AsyncpgDriver, Job, PgQueuer, Queries

BATCH = 100
FILL = 1_000


async def install(dsn: str) -> None:
    """Its tables."""
    connection = await asyncpg.connect(dsn)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


async def fill(dsn: str, count: int) -> None:
    """So many jobs."""
    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))
    for start in range(0, count, FILL):
        size = min(FILL, count - start)
        await queries.enqueue(["empty"] * size, [None] * size, [0] * size)
    await connection.close()


async def work(dsn: str) -> None:
    """One worker process."""
    connection = await asyncpg.connect(dsn)
    engine = PgQueuer(AsyncpgDriver(connection))

    @engine.entrypoint("empty")
    async def empty(job: Job) -> None:
        """Nothing."""

    await engine.run(batch_size=BATCH)


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    if verb == "fill":
        asyncio.run(fill(arguments[0], int(arguments[1])))
    else:
        asyncio.run({"install": install, "work": work}[verb](arguments[0]))
