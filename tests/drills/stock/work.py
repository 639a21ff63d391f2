"""The same work as the other drills' tasks: one call to the provider, which notes it."""

from __future__ import annotations

import json
import os
import urllib.request


def call(mark: str) -> str:
    """Ask the provider, and tell it for which task."""
    body = {"model": "simulated-small", "messages": [{"role": "user", "content": f"Drill [task:{mark}]"}]}
    request = urllib.request.Request(  # noqa: S310 - our own provider
        os.environ["DRILL_PROVIDER"],
        json.dumps(body).encode(),
        {"content-type": "application/json", "x-redrive-task": mark},
    )
    with urllib.request.urlopen(request, timeout=15) as answer:  # noqa: S310
        return str(json.load(answer)["choices"][0]["message"]["content"])


def fill(start: int, count: int) -> None:
    """So many tasks, one by one: it has no other way. Their marks are numbers."""
    from django_q.tasks import async_task

    for number in range(start, start + count):
        async_task("tests.drills.stock.work.call", str(number), task_name=str(number))
