"""What its tasks call, and how they are put into its queue."""

from __future__ import annotations


def empty() -> None:
    """Nothing."""


def fill(count: int) -> None:
    """So many tasks, one by one: it has no other way."""
    from django_q.tasks import async_task

    for _number in range(count):
        async_task("tests.benchmarks.rivals.stock.work.empty")
