"""The clock drill: clusters whose clocks are ten minutes fast and slow work on one queue. No figure changes.

libfaketime moves their wall clocks, each for good. Told to leave the monotonic clock alone it breaks sleeping until a
time of that clock, which Python does, so a clock cannot be set while they run; the monotonic clock is moved by the same
constant, which nobody can tell.
"""

from __future__ import annotations

import argparse
import glob
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from tests.cluster import QCluster, wait_until
from tests.drills.checker import Evidence, Finding, check, figure
from tests.drills.report import say, told
from tests.drills.rig import Rig

LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1"
#: The provider asks for 3 s, as a date of whole seconds, rounded up; some of that may have passed when it is read.
HINT_SECONDS = (0.1, 4.5)
#: How much later than its time an attempt may begin on a busy machine, or where the queue is long: a wrong clock would
#: make it ten minutes.
LATE_SECONDS = 60.0
CONFIG = """
[[provider]]
name = "simulated"
base_url = "http://127.0.0.1:{port}{path}/v1"

[[provider]]
name = "dated"
base_url = "http://127.0.0.1:{port}{path}/times/1/retry-after/3/fault/rate_limit_date/v1"

[[provider]]
name = "broken"
base_url = "http://127.0.0.1:{port}{path}/times/1/fault/error_500/v1"

# Says what time it is to the process that runs it.
[[kind]]
name = "clock"
handler = "workshop.clock"
safe_to_rerun = true

[[kind]]
name = "drill"
provider = "simulated"
model = "simulated-small"
prompt = "Drill [task:{{{{ mark }}}}]"

[[kind]]
name = "drill.dated"
provider = "dated"
model = "simulated-small"
prompt = "Drill [task:{{{{ mark }}}}]"

[[kind]]
name = "drill.broken"
provider = "broken"
model = "simulated-small"
prompt = "Drill [task:{{{{ mark }}}}]"
initial_interval_seconds = 2
jitter = 0
"""
#: Seconds, by the database, from the end of an attempt that failed until the next began.
WAITS = """
SELECT extract(epoch FROM later.started_at - earlier.finished_at)::float8
FROM tasks_attempt earlier JOIN tasks_attempt later ON later.task_id = earlier.task_id AND later.id > earlier.id
JOIN tasks_task t ON t.id = earlier.task_id WHERE t.kind_id = %s
"""
HINTS = """
SELECT (decision ->> 'hint_seconds')::float8 FROM tasks_attempt a JOIN tasks_task t ON t.id = a.task_id
WHERE t.kind_id = 'drill.dated' AND decision ? 'hint_seconds'
"""
#: How far a call's begin, in the trail, lies outside of its attempt, and how much longer than the attempt it took.
CALLS = """
SELECT greatest(extract(epoch FROM a.started_at - c.started_at), extract(epoch FROM c.started_at - a.finished_at),
                c.duration_ms / 1000.0 - extract(epoch FROM a.finished_at - a.started_at))::float8
FROM tasks_modelcall c JOIN tasks_attempt a ON a.id = c.attempt_id
"""
LEASES = """
SELECT extract(epoch FROM lease_until - now())::float8 FROM tasks_workerprocess
WHERE lost_at IS NULL AND stopped_at IS NULL
"""


@dataclass(frozen=True)
class Plan:
    """``shifts``: of the clock of one cluster each, in seconds. ``tasks``: of each of three sorts."""

    tasks: int = 8
    shifts: tuple[int, ...] = (600, -600)
    workers: int = 1
    lease: float = 4.0
    settle_seconds: float = 60.0


FULL = Plan(tasks=200, shifts=(600, -600, 0, 86_400), workers=2, lease=12.0, settle_seconds=180.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of ``python -m tests.drills clock``."""
    parser.add_argument("--short", action="store_true", help="the size that runs as a test")


def main(chosen: argparse.Namespace) -> bool:
    """The drill from the command line; whether every promise held."""
    return told(run(Plan() if chosen.short else FULL))


def library() -> str | None:
    """Where libfaketime is, which apt-get installs; None where it is not."""
    return next(iter(glob.glob(LIBRARY)), None)


def run(plan: Plan, say: Callable[[str], None] = say) -> list[Finding]:
    """Run the drill; what it found. Raises RuntimeError where libfaketime is missing."""
    first, *others = (_shifted(plan, shift) for shift in plan.shifts)
    with Rig(path="/delay/200-800", config=CONFIG, **first) as rig, ExitStack() as stack:
        clusters = [rig.cluster]
        clusters += [stack.enter_context(QCluster(rig.url, **settings)).wait_ready() for settings in others]
        wait_until(partial(_all_shifted, rig, plan), "workers that believe in their clocks")
        for kind in ("drill", "drill.dated", "drill.broken"):
            rig.submit(plan.tasks, kind)
        leases: list[float] = []
        settled = rig.wait_settled(plan.settle_seconds, lambda: leases.extend(left for (left,) in rig.sql(LEASES)))
        rig.unmanage()
        codes = [_stopped(cluster) for cluster in clusters]
        return [
            *check(_without_clocks(rig)),
            *_figures(plan, rig, leases),
            figure("seconds until all had ended", round(settled, 1), settled < plan.settle_seconds),
            Finding("exit codes of the stops", [str(code) for code in codes if code]),
        ]


def _shifted(plan: Plan, shift: int) -> dict[str, object]:
    if (preloaded := library()) is None:
        raise RuntimeError("The clock drill needs libfaketime: apt-get install libfaketime.")
    return {
        "REDRIVE_LEASE_SECONDS": plan.lease,
        "REDRIVE_WORKERS": plan.workers,
        "REDRIVE_SLOTS": 10,
        "REDRIVE_APPS": "tests.tasks.engine.workshop",
        "LD_PRELOAD": preloaded,
        "FAKETIME": f"{shift:+d}",
    }


def _stopped(cluster: QCluster) -> int:
    cluster.terminate()
    return cluster.wait()


def _all_shifted(rig: Rig, plan: Plan) -> bool:
    """Whether tasks that ask for the time were told all the times that the clusters believe in."""
    ids = rig.submit(10 * len(plan.shifts), "clock")
    rig.wait_settled(10)
    told = rig.sql("SELECT result::float8 FROM tasks_task WHERE id = ANY(%s::uuid[]) AND status = 'succeeded'", ids)
    return all(any(abs(wall - time.time() - shift) < 60 for (wall,) in told) for shift in plan.shifts)


def _without_clocks(rig: Rig) -> Evidence:
    """The evidence of the prompts: the provider knows nothing of the others."""
    evidence = rig.evidence()
    clocks = {task for (task,) in rig.sql("SELECT id::text FROM tasks_task WHERE kind_id = 'clock'")}
    return replace(
        evidence,
        submitted=[task for task in evidence.submitted if task not in clocks],
        tasks=[row for row in evidence.tasks if row.id not in clocks],
        attempts=[row for row in evidence.attempts if row.task not in clocks],
        events=[row for row in evidence.events if row.task not in clocks],
    )


def _figures(plan: Plan, rig: Rig, leases: list[float]) -> list[Finding]:
    """Waits, hints, durations and leases, which a clock must not change; the late ends are for a busy machine."""
    ended = dict(rig.sql("SELECT status, count(*) FROM tasks_task GROUP BY 1"))
    lost = rig.sql("SELECT id FROM tasks_workerprocess WHERE lost_at IS NOT NULL")
    hints = [seconds for (seconds,) in rig.sql(HINTS)]
    calls = [seconds for (seconds,) in rig.sql(CALLS)]
    return [
        Finding(f"tasks that did not succeed ({ended})", [] if set(ended) == {"succeeded"} else [f"{ended}"]),
        Finding("worker processes lost", [str(row) for row in lost]),
        _range("leases left, in seconds", leases, 0.0, plan.lease),
        _range("Retry-After as it was understood, in seconds", hints, *HINT_SECONDS),
        _range("waits for it, in seconds", _waits(rig, "drill.dated"), HINT_SECONDS[0], HINT_SECONDS[1] + LATE_SECONDS),
        _range("waits of retries after 2 s", _waits(rig, "drill.broken"), 1.9, 2.0 + LATE_SECONDS),
        _range("calls outside of their attempts, in seconds", calls, -plan.settle_seconds, 0.2),
        figure("tasks with a hint", len(hints), len(hints) == plan.tasks),
    ]


def _waits(rig: Rig, kind: str) -> list[float]:
    return [seconds for (seconds,) in rig.sql(WAITS, kind)]


def _range(name: str, values: list[float], least: float, most: float) -> Finding:
    outside = [f"{value:.2f}" for value in values if not least <= value <= most]
    return Finding(name, outside, f"{min(values):.2f} to {max(values):.2f}" if values else "none")
