"""The poison drill: a task that kills its process, among good ones. It alone dies, and with its third process."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.drills.chaos import Chaos
from tests.drills.checker import Finding, check, figure
from tests.drills.report import say, told
from tests.drills.rig import CONFIG, Rig

POISON = """
[[kind]]
name = "drill.poison"
handler = "workshop.burn"
safe_to_rerun = true
priority = 50
"""


@dataclass(frozen=True)
class Plan:
    """``kill_seconds``: how long workers are killed at random as well, every 1 to 2 s; then it takes more deaths."""

    good: int = 40
    poisons: int = 1
    workers: int = 2
    slots: int = 10
    lease: float = 4.0
    kill_seconds: float = 0.0
    settle_seconds: float = 120.0


FULL = Plan(good=200, workers=4, lease=12.0, settle_seconds=300.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of ``python -m tests.drills poison``."""
    parser.add_argument("--short", action="store_true", help="the size that runs as a test")
    parser.add_argument("--good", type=int, default=FULL.good)
    parser.add_argument("--poisons", type=int, default=FULL.poisons)
    parser.add_argument("--lease", type=float, default=FULL.lease)
    parser.add_argument("--seconds", type=float, default=FULL.kill_seconds, help="how long to kill workers as well")


def main(chosen: argparse.Namespace) -> bool:
    """The drill from the command line; whether every promise held."""
    full = Plan(
        good=chosen.good,
        poisons=chosen.poisons,
        workers=FULL.workers,
        lease=chosen.lease,
        kill_seconds=chosen.seconds,
        settle_seconds=FULL.settle_seconds,
    )
    return told(run(Plan() if chosen.short else full))


def run(plan: Plan, say: Callable[[str], None] = say) -> list[Finding]:
    """Run the drill; what it found."""
    settings = {
        "REDRIVE_LEASE_SECONDS": plan.lease,
        "REDRIVE_DRAIN_SECONDS": 5,
        "REDRIVE_SLOTS": plan.slots,
        "REDRIVE_WORKERS": plan.workers,
        "REDRIVE_APPS": "tests.tasks.engine.workshop",
    }
    with Rig(path="/delay/500-3000", config=CONFIG + POISON, **settings) as rig:
        first = plan.good // 2
        rig.submit(first)
        text = "".join(json.dumps({"poison": True}) + "\n" for _ in range(plan.poisons))
        poisons = rig.command("submit", "drill.poison", "--input", "-", text=text).split()
        rig.submitted += poisons
        chaos = Chaos(rig, 1, say)
        if plan.kill_seconds:
            chaos.kill(plan.good - first, plan.kill_seconds, (1.0, 2.0), only_workers=True)
        else:
            rig.submit(plan.good - first)
        settled = rig.wait_settled(plan.settle_seconds)
        rig.unmanage()
        rig.cluster.terminate()
        rig.cluster.wait()
        return [
            *check(rig.evidence()),
            *_figures(plan, rig, poisons),
            figure("seconds until all had ended", round(settled, 1), settled < plan.settle_seconds),
        ]


def _figures(plan: Plan, rig: Rig, poisons: list[str]) -> list[Finding]:
    """Who died, of what, and after how many processes."""
    rows = rig.sql("SELECT id::text, status, reason, rescues FROM tasks_task")
    alive = [f"{row}" for row in rows if row[0] in poisons and row[1:3] != ("dead", "lease_expired")]
    innocent = [f"{row}" for row in rows if row[0] not in poisons and row[1] != "succeeded"]
    most = max(row[3] for row in rows if row[0] in poisons)
    return [
        Finding("poison tasks that did not die as lease_expired", alive),
        Finding(f"innocent tasks, of {plan.good}, that did not succeed", innocent),
        figure(
            f"processes that {plan.poisons} poison tasks took, at the most",
            most,
            most == 3 if plan.poisons == 1 and not plan.kill_seconds else most <= 10,
        ),
    ]
