"""The proxy drill: the line between the workers and the database swallows everything, is cut, is slow."""

from __future__ import annotations

import argparse
import re
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import wait_until
from tests.drills.chaos import UNDER_WAY
from tests.drills.checker import Finding, check, figure, repeated
from tests.drills.line import Line, Mode
from tests.drills.report import say, told
from tests.drills.rig import Rig

NOTICED_SECONDS = 15.0
#: What a process says that has noticed, by its number. The guard itself has no connection.
COMPLAINT = re.compile(r"^.* (?:WARNING|ERROR) tasks\.engine\.(?!sentinel)[\w.]+\[(\d+)\] ", re.MULTILINE)


@dataclass(frozen=True)
class Plan:
    """Times in seconds. ``troubles`` one after the other, each met by so many tasks under way."""

    troubles: tuple[tuple[Mode, float], ...] = (("hole", 6.0), ("cut", 2.0), ("slow", 3.0))
    tasks: int = 20
    workers: int = 2
    slots: int = 10
    lease: float = 4.0
    settle_seconds: float = 60.0


FULL = Plan(
    troubles=(("hole", 6.0), ("hole", 30.0), ("cut", 6.0), ("cut", 20.0), ("slow", 30.0)) * 2,
    tasks=80,
    workers=4,
    lease=12.0,
    settle_seconds=180.0,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of ``python -m tests.drills proxy``."""
    parser.add_argument("--short", action="store_true", help="the size that runs as a test")


def main(chosen: argparse.Namespace) -> bool:
    """The drill from the command line; whether every promise held."""
    return told(run(Plan() if chosen.short else FULL))


def run(plan: Plan, say: Callable[[str], None] = say) -> list[Finding]:
    """Run the drill; what it found."""
    settings = {
        "REDRIVE_LEASE_SECONDS": plan.lease,
        "REDRIVE_DRAIN_SECONDS": 5,
        "REDRIVE_SLOTS": plan.slots,
        "REDRIVE_WORKERS": plan.workers,
    }
    with ExitStack() as stack:
        said = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "said"
        line = stack.enter_context(Line())
        rig = stack.enter_context(Rig(path="/delay/500-3000", through=line.through, said=said, **settings))
        found: list[Finding] = []
        for mode, seconds in plan.troubles:
            found += _trouble(plan, rig, line, mode, seconds, say)
        rig.unmanage()
        rig.cluster.terminate()
        code = rig.cluster.wait()
        ended = dict(rig.sql("SELECT status, count(*) FROM tasks_task GROUP BY 1"))
        return [
            *check(rig.evidence()),
            *found,
            Finding("tasks that did not succeed", [f"{ended}"] if set(ended) != {"succeeded"} else []),
            figure("exit code of the stop", code, code == 0 and not rig.restarts),
            Finding("processes left", [str(pid) for pid in rig.cluster.survivors()]),
        ]


def _trouble(plan: Plan, rig: Rig, line: Line, mode: Mode, seconds: float, say: Callable[[str], None]) -> list[Finding]:
    """One trouble while tasks run, and what it did."""
    ids = rig.submit(plan.tasks)
    wait_until(lambda: rig.sql(UNDER_WAY)[0][0] >= plan.workers, "tasks under way")
    alive = rig.sql("SELECT pid FROM tasks_workerprocess WHERE lost_at IS NULL AND stopped_at IS NULL")
    processes = {process.pid for process in rig.cluster.processes()} & {pid for (pid,) in alive}
    heard = len(rig.heard())
    say(f"{mode} for {seconds:g} s")
    line.set(mode)
    end = threading.Timer(seconds, line.set, ("carry",))
    end.start()
    noticed = _noticed(rig, processes, heard) if mode == "hole" else {}
    end.join()
    settled = rig.wait_settled(plan.settle_seconds)
    what = f"{mode} of {seconds:g} s"
    found = [figure(f"seconds until all had ended after a {what}", round(settled, 1), settled < plan.settle_seconds)]
    # In a hole a connection must first be given up: with the shortest leases that takes as long as they last.
    if mode == "slow" or (seconds < plan.lease and (mode == "cut" or plan.lease >= 12)):
        found.append(Finding(f"calls repeated for a {what}", repeated(rig.evidence(), ids)))
    if noticed:
        latest = max(noticed.values())
        words = f"seconds until all {len(noticed)} processes had noticed a {what}"
        found.append(figure(words, round(latest, 1), latest < NOTICED_SECONDS))
    return found


def _noticed(rig: Rig, processes: set[int], heard: int) -> dict[int, float]:
    """Process -> seconds until it first complained of the database; infinite for one that never did."""
    noticed: dict[int, float] = {}
    began = time.monotonic()
    while time.monotonic() < began + NOTICED_SECONDS + 1 and len(noticed) < len(processes):
        for pid in map(int, COMPLAINT.findall(rig.heard()[heard:])):
            if pid in processes:
                noticed.setdefault(pid, time.monotonic() - began)
        time.sleep(0.1)
    return {pid: noticed.get(pid, float("inf")) for pid in processes}
