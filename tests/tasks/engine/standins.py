"""A cluster of real processes whose workers and caretaker are stand-ins: ``python -m tests.tasks.engine.standins``.

Every child appends one JSON line to the file STANDIN_LOG for each thing that happens to it. A worker behaves as
STANDIN_WORKER says: ``asyncio`` (drains for STANDIN_BUSY seconds after SIGTERM; SIGUSR1 blocks its event loop, SIGUSR2
recycles it), ``stubborn`` (never stops), ``failing`` (raises at once), ``quitting`` (returns at once).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

import django

from tasks.engine.timer import Timer


def note(event: str, **more: object) -> None:
    line = {"event": event, "pid": os.getpid(), "ppid": os.getppid(), "at": time.monotonic(), **more}
    with open(os.environ["STANDIN_LOG"], "a") as log:
        log.write(json.dumps(line) + "\n")


def feed(timer: Timer | None) -> None:
    if timer:
        timer.feed()


async def serve(timer: Timer | None) -> str:
    """Until a signal ends it: "stopped" or "recycled"."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[str] = loop.create_future()

    def end(how: str) -> None:
        if not ended.done():
            ended.set_result(how)

    loop.add_signal_handler(signal.SIGTERM, end, "stopped")
    loop.add_signal_handler(signal.SIGINT, end, "stopped")
    loop.add_signal_handler(signal.SIGUSR1, time.sleep, 600)
    loop.add_signal_handler(signal.SIGUSR2, end, "recycled")
    note("ready", role="worker" if timer else "caretaker")
    while not ended.done():
        feed(timer)
        await asyncio.wait([ended], timeout=0.1)
    note("signalled", role="worker" if timer else "caretaker")
    busy_until = time.monotonic() + (float(os.environ.get("STANDIN_BUSY", "0")) if timer else 0)
    while time.monotonic() < busy_until:
        feed(timer)
        await asyncio.sleep(0.05)
    return ended.result()


def worker(timer: Timer, cluster: str) -> None:
    how = os.environ.get("STANDIN_WORKER", "asyncio")
    note("born", role="worker", cluster=cluster)
    if how == "failing":
        raise RuntimeError("token=sk-proj-abcdefghijklmnopqrstuvwxyz012345 is no use here")
    if how == "quitting":
        return
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        note("ready", role="worker")
        while True:
            timer.feed()
            time.sleep(0.1)
    end = asyncio.run(serve(timer))
    if end == "recycled":
        timer.recycle()
    note(end, role="worker")


def caretaker(cluster: str) -> None:
    note("born", role="caretaker", cluster=cluster)
    note(asyncio.run(serve(None)), role="caretaker")


class Unfit:
    """Configuration that django-q2 stumbles over, once two workers and a caretaker are at work."""

    def __bool__(self) -> bool:
        deadline = time.monotonic() + 30
        while Path(os.environ["STANDIN_LOG"]).read_text().count('"event": "ready"') < 3:
            if time.monotonic() > deadline:
                raise TimeoutError("the stand-ins did not begin")
            time.sleep(0.01)  # other processes write it
        return True


def main() -> None:
    django.setup()
    from django_q.conf import Conf

    from tasks.engine.cluster import Cluster
    from tasks.engine.sentinel import Targets

    note("main")
    if os.environ.get("STANDIN_AFFINITY") == "unfit":
        Conf.CPU_AFFINITY = Unfit()
    sys.exit(0 if Cluster(Targets(worker, caretaker)).run() else 1)


if __name__ == "__main__":
    main()
