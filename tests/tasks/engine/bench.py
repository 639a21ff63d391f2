"""One attempt on the bench: claimed from the real database, run by the real runner, its end stored; and refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg

from tasks import lifecycle
from tasks.engine import lease, registry
from tasks.engine.catalogue import load_catalogue
from tasks.engine.database import DatabaseThread
from tasks.engine.others import OtherProviders
from tasks.engine.runner import Runner, Running
from tasks.engine.snapshot import Job, Versions, claim_jobs
from tasks.errors import BUILT_IN, Catalogue
from tasks.lifecycle import End
from tasks.llm.provider import Clients
from tasks.models import Attempt, Kind

Meddle = Callable[[Running], Awaitable[None]]


def claim(kind: Kind, payloads: list[Any]) -> tuple[int, list[Job]]:
    """Submit tasks with these payloads and claim them; the worker's id and the jobs."""
    worker = lease.register("worker", "host/redrive/1", 10, registry.names())
    lifecycle.submit_many(kind.name, payloads)
    jobs = claim_jobs(worker, len(payloads), registry.names(), Versions()).jobs
    assert len(jobs) == len(payloads)
    return worker, jobs


def attempt(kind: Kind, payload: Any = None, meddle: Meddle | None = None, *, held: bool = True) -> Attempt:
    """Submit, claim, run, store; the attempt as it stands in the database.

    ``meddle`` runs beside it. ``held``: whether the worker has its lease, as far as it knows.
    """
    worker, (job,) = claim(kind, [payload])
    return end_of(worker, job, meddle, held=held)


def end_of(worker: int, job: Job, meddle: Meddle | None = None, *, held: bool = True) -> Attempt:
    """Run what was claimed, and store its end."""
    end = asyncio.run(run(job, worker, load_catalogue(), meddle, held=held))
    saved = lifecycle.finish(worker, [end])
    assert saved.won == {job.claimed.attempt_id}
    return Attempt.objects.select_related("task").get(pk=job.claimed.attempt_id)


async def run(
    job: Job, worker: int, catalogue: Catalogue = BUILT_IN, meddle: Meddle | None = None, *, held: bool = True
) -> End:
    """The end of the attempt."""
    clients, database = Clients(), DatabaseThread("bench")
    with ThreadPoolExecutor(2) as threads:
        running = Running(job, worker)
        runner = Runner(clients, threads, catalogue, lambda worker_id: held, OtherProviders(database))
        running.task = asyncio.create_task(runner.run(running))
        if meddle:
            await meddle(running)
        end = await running.task
    await clients.aclose()
    await database.close()
    return end


@contextmanager
def letters_refused(second: psycopg.Connection, task: UUID) -> Iterator[None]:
    """No letter can be written for this task."""
    second.execute(f"ALTER TABLE deadletters_deadletter ADD CONSTRAINT refused CHECK (task_id <> '{task}') NOT VALID")
    try:
        yield
    finally:
        second.execute("ALTER TABLE deadletters_deadletter DROP CONSTRAINT refused")


@contextmanager
def successes_refused(second: psycopg.Connection, tasks: Sequence[UUID]) -> Iterator[None]:
    """The server fails, in a way that says nothing, when one of these tasks is to succeed."""
    ids = ", ".join(f"'{task}'" for task in tasks)
    second.execute(
        f"""CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'refused by the test' USING ERRCODE = 'XX000'; END $$;
        CREATE TRIGGER refuse BEFORE UPDATE ON tasks_task FOR EACH ROW
            WHEN (NEW.status = 'succeeded' AND NEW.id IN ({ids})) EXECUTE FUNCTION refuse()"""
    )
    try:
        yield
    finally:
        second.execute("DROP TRIGGER refuse ON tasks_task; DROP FUNCTION refuse")
