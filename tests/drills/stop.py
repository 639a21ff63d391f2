"""The stop drill: SIGTERM to main and to the whole group, idle and busy, again and again. Nothing is lost or left."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.cluster import wait_until
from tests.drills.chaos import UNDER_WAY
from tests.drills.checker import Finding, check, figure
from tests.drills.report import say, told
from tests.drills.rig import Rig

#: Beyond the drain time.
STOP_SECONDS = 5.0


@dataclass(frozen=True)
class Plan:
    """``times``: stops of each of the four sorts. Times in seconds."""

    times: int = 1
    drain: float = 1.5
    slots: int = 10
    #: Tasks under way at a busy stop, whose calls take from well within the drain time to well beyond it.
    tasks: int = 12
    delay: str = "200-4000"
    settle_seconds: float = 90.0


FULL = Plan(times=20, drain=5.0, tasks=20, delay="500-12000", settle_seconds=300.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of ``python -m tests.drills stop``."""
    parser.add_argument("--short", action="store_true", help="the size that runs as a test")
    parser.add_argument("--times", type=int, default=FULL.times, help="stops of each of the four sorts")


def main(chosen: argparse.Namespace) -> bool:
    """The drill from the command line; whether every promise held."""
    full = Plan(chosen.times, FULL.drain, FULL.slots, FULL.tasks, FULL.delay, FULL.settle_seconds)
    return told(run(Plan() if chosen.short else full))


def run(plan: Plan, say: Callable[[str], None] = say) -> list[Finding]:
    """Run the drill; what it found."""
    settings = {"REDRIVE_DRAIN_SECONDS": plan.drain, "REDRIVE_SLOTS": plan.slots}
    took: dict[tuple[bool, bool], list[float]] = {}
    broken: list[str] = []
    with Rig(path=f"/delay/{plan.delay}", **settings) as rig:
        rig.unmanage()
        for _ in range(plan.times):
            for busy in (False, True):
                for group in (False, True):
                    took.setdefault((busy, group), []).append(_stop(plan, rig, busy, group, broken))
                    say(f"stopped {_name(busy, group)} in {took[busy, group][-1]:.1f} s")
                    rig.cluster = rig.make_cluster().start().wait_ready()
        settled = rig.wait_settled(plan.settle_seconds)
        _stop(plan, rig, False, False, broken)
        outcomes = dict(rig.sql("SELECT outcome, count(*) FROM tasks_attempt GROUP BY 1"))
        counted = rig.sql("SELECT id FROM tasks_attempt WHERE counted AND outcome <> 'succeeded'")
        ends = dict(rig.sql("SELECT status, count(*) FROM tasks_task GROUP BY 1"))
        # On a busy machine the ends of processes take longer, as their starts do.
        limit = plan.drain + STOP_SECONDS + rig.start_seconds
        return [
            *check(rig.evidence()),
            *(
                figure(
                    f"longest of {len(seconds)} stops, {_name(*sort)}, in seconds",
                    round(max(seconds), 1),
                    max(seconds) < limit,
                )
                for sort, seconds in took.items()
            ),
            Finding("stops that left a process, a running task or an exit code", broken),
            Finding(
                f"attempts lost or counted for a stop ({outcomes})",
                [*map(str, counted), *(["lost"] if outcomes.get("lost") else [])],
            ),
            figure("seconds until all had ended", round(settled, 1), set(ends) == {"succeeded"}),
        ]


def _name(busy: bool, group: bool) -> str:
    return f"{'busy' if busy else 'idle'}, {'the group' if group else 'main'}"


def _stop(plan: Plan, rig: Rig, busy: bool, group: bool, broken: list[str]) -> float:
    """One stop, with tasks under way or with none; seconds until all processes were gone."""
    if busy:
        rig.submit(plan.tasks)
        wait_until(lambda: rig.sql(UNDER_WAY)[0][0] >= plan.tasks // 2, "tasks under way")
    else:
        rig.wait_settled(plan.settle_seconds)
    began = time.monotonic()
    rig.cluster.terminate(group=group)
    code = rig.cluster.wait()
    took = time.monotonic() - began
    left = rig.cluster.survivors()
    running = rig.sql(
        "SELECT 1 FROM tasks_task WHERE status = 'running' UNION ALL"
        " SELECT 1 FROM tasks_attempt WHERE outcome = 'running'"
    )
    if code or left or running:
        broken.append(f"{_name(busy, group)}: exit code {code}, processes {left}, {len(running)} running")
    return took
