"""The control: stock django-q2, the same tasks, kills and checker. It shows that the drill can see a loss."""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.cluster import QCluster, wait_until
from tests.drills import checker
from tests.drills.census import Census
from tests.drills.chaos import Chaos
from tests.drills.checker import EventRow, Evidence, Finding, TaskRow, figure
from tests.drills.report import say, told
from tests.drills.rig import Rig

SETTINGS = "tests.drills.stock.settings"
#: Three times its own retry: what has not come back by then does not come back.
QUIET_SECONDS = 90.0


@dataclass(frozen=True)
class Plan:
    """Times in seconds."""

    tasks: int = 200
    kill_seconds: float = 60.0
    workers: int = 4
    settle_seconds: float = 240.0
    seed: int = 7


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of ``python -m tests.drills control``."""
    parser.add_argument("--seconds", type=float, default=Plan.kill_seconds, help="how long to kill")
    parser.add_argument("--tasks", type=int, default=Plan.tasks)
    parser.add_argument("--seed", type=int, default=Plan.seed)


def main(chosen: argparse.Namespace) -> bool:
    """The drill from the command line; whether stock django-q2 broke a promise, as it is meant to."""
    return not told(run(Plan(tasks=chosen.tasks, kill_seconds=chosen.seconds, seed=chosen.seed)))


class StockRig(Rig):
    """The rig with django-q2 as it comes in place of the product. A task is known by its mark."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(path="/delay/500-3000")
        self._workers = plan.workers

    def install(self) -> None:
        """Its tables."""
        self._python("-m", "django", "migrate", "--verbosity", "0")

    def make_cluster(self) -> QCluster:
        """Its cluster."""
        return QCluster(self.url, ("-m", "django", "qcluster"), **self._environment())

    def wait_ready(self, cluster: QCluster) -> None:
        """Main, sentinel, pusher, monitor and the workers are there."""
        wait_until(lambda: len(cluster.processes()) >= 4 + self._workers, "all its processes")

    def role(self, pid: int) -> str:
        """It does not tell its pusher, monitor and workers apart."""
        return "child"

    def submit(self, count: int, kind: str = "drill") -> list[str]:
        """So many tasks; their marks."""
        start = len(self.submitted)
        code = f"import django; django.setup(); from tests.drills.stock.work import fill; fill({start}, {count})"
        self._python("-c", code)
        marks = [str(number) for number in range(start, start + count)]
        self.submitted += marks
        return marks

    def succeeded(self) -> dict[str, float]:
        """Mark -> when its success was recorded."""
        return dict(self.sql("SELECT name, extract(epoch FROM stopped)::float8 FROM django_q_task WHERE success"))

    def evidence(self) -> Evidence:
        """In the checker's words."""
        done = self.succeeded()
        return Evidence(
            submitted=self.submitted,
            tasks=[TaskRow(mark, "succeeded" if mark in done else "ready") for mark in self.submitted],
            attempts=[],
            events=[EventRow(mark, 1, "succeeded", "", "succeeded", at) for mark, at in done.items()],
            calls=self.calls(),
        )

    def _python(self, *words: str) -> None:
        self.command(*words[1:], program=words[0], **self._environment())

    def _environment(self) -> dict[str, object]:
        return {
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "DRILL_DSN": self.url,
            "DRILL_WORKERS": self._workers,
            "DRILL_PROVIDER": f"http://127.0.0.1:{self.port}{self._path}/v1/chat/completions",
        }


def run(plan: Plan, say: Callable[[str], None] = say) -> list[Finding]:
    """Run the drill; what it found."""
    with StockRig(plan) as rig, Census(rig) as census:
        chaos = Chaos(rig, plan.seed, say)
        chaos.kill(plan.tasks, plan.kill_seconds, (2.0, 2.0))
        settled = _wait_quiet(rig, plan.settle_seconds)
        evidence = rig.evidence()
        rig.unmanage()
        rig.cluster.terminate()
        began = time.monotonic()
        with suppress(Exception):
            rig.cluster.wait(20)
        stopped = time.monotonic() - began
        orphans = set(census.orphans)
        for pid in {*orphans, *census.births}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return [
            Finding("tasks that never ended", list(checker.lost(evidence))),
            Finding("called after a recorded success", list(checker.started_after_success(evidence))),
            Finding("calls made more than once", checker.repeated(evidence, evidence.submitted)),
            Finding("processes that outlived their tree", sorted(map(str, orphans))),
            figure("seconds until it stopped", round(stopped, 1), stopped < 20),
            figure("seconds until nothing happened any more", round(settled, 1), True),
        ]


def _wait_quiet(rig: StockRig, timeout: float) -> float:
    """Until all have succeeded, or nothing has for three times its retry; seconds."""
    began = last = time.monotonic()
    count = -1
    while (now := time.monotonic()) < min(began + timeout, last + QUIET_SECONDS) and count < len(rig.submitted):
        if (done := len(rig.succeeded())) != count:
            count, last = done, now
        time.sleep(0.5)
    return time.monotonic() - began
