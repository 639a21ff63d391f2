"""The reconcile drill: handlers with an effect outside are killed before and after it, and it happens exactly once."""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from tests.cluster import wait_until
from tests.drills import checker
from tests.drills.checker import Finding
from tests.drills.ledger.handlers import booked_in
from tests.drills.rig import UNFINISHED, Rig

LEASE_SECONDS = 4.0
KINDS = ("drill.charge", "drill.charge.sync")
CONFIG = """
[[kind]]
name = "{name}"
handler = "{name}"
timeout_seconds = 30
max_attempts = 3
safe_to_rerun = {safe}
"""
#: Each so many kills one strikes any process of the tree, the others a busy worker.
ANY_EVERY = 4
SUCCESSES = (
    "SELECT task_id::text, count(*), min(extract(epoch FROM at)::float8) FROM tasks_taskevent"
    " WHERE to_status = 'succeeded' GROUP BY task_id"
)
BUSY = (
    "SELECT w.pid, array_agg(t.id || ' ' || t.attempt_id) FROM tasks_task t"
    " JOIN tasks_workerprocess w ON w.id = t.worker_id WHERE t.status = 'running'"
    " AND w.lost_at IS NULL AND w.exit_seen_at IS NULL GROUP BY w.pid ORDER BY w.pid"
)


@dataclass(frozen=True)
class Plan:
    """How large a drill is. Times in seconds."""

    tasks: int = 60
    kills: int = 6
    kill_every: tuple[float, float] = (0.2, 1.0)
    workers: int = 2
    slots: int = 5
    seed: int = 1
    #: Whether handlers are asked; else they simply run again, which doubles effects.
    asked: bool = True
    settle_seconds: float = 60.0


FULL = Plan(tasks=400, kills=40, kill_every=(0.3, 1.5), workers=3, slots=6, seed=7, settle_seconds=300.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of ``python -m tests.drills reconcile``."""
    parser.add_argument("--short", action="store_true", help="the size that runs as a test")
    parser.add_argument("--tasks", type=int, default=FULL.tasks)
    parser.add_argument("--kills", type=int, default=FULL.kills, help="how many processes to kill")
    parser.add_argument("--seed", type=int, default=FULL.seed)


def main(chosen: argparse.Namespace) -> bool:
    """The drill from the command line; whether every promise held."""
    full = replace(FULL, tasks=chosen.tasks, kills=chosen.kills, seed=chosen.seed)
    report = run(Plan() if chosen.short else full)
    sys.stdout.write("\n".join(report.lines()) + "\n")
    return all(finding.held for finding in report.findings) and not report.survivors


@dataclass
class Report:
    """What came of a drill."""

    findings: list[Finding]
    kills: Counter[str]
    #: How often each event type happened, and how many tasks ended in each status and for each reason of death.
    events: Counter[str]
    statuses: dict[str, int]
    reasons: dict[str, int]
    effects: int
    seconds: float
    survivors: list[int]

    def lines(self) -> list[str]:
        """One line a promise or figure."""
        told = {name: self.events[name] for name in ("rescued", "reconciled", "not_done", "asked")}
        return [
            *map(str, self.findings),
            f"kills: {dict(self.kills)}, ends: {self.statuses}, deaths: {self.reasons}, effects: {self.effects}",
            f"events: {told}, late answers refused: {self.events['late_answer_refused']}",
            f"from the first kill to the last end: {self.seconds:.1f} s; processes left: {len(self.survivors)}",
        ]


def run(plan: Plan, say: Callable[[str], None] = print) -> Report:
    """Run the drill and read what it left."""
    folder = Path(tempfile.mkdtemp(prefix="redrive-ledger-"))
    ledger = folder / "ledger"
    settings = {
        "REDRIVE_LEASE_SECONDS": LEASE_SECONDS,
        "REDRIVE_WATCHDOG_SECONDS": 3,
        "REDRIVE_DRAIN_SECONDS": 5,
        "REDRIVE_SLOTS": plan.slots,
        "REDRIVE_WORKERS": plan.workers,
        "REDRIVE_APPS": "tests.drills.ledger",
        "DRILL_LEDGER": ledger,
    }
    try:
        with Rig(path="/fast", **settings) as rig:
            safe = str(not plan.asked).lower()
            rig.command("loadconfig", "-", text="".join(CONFIG.format(name=kind, safe=safe) for kind in KINDS))
            # Held back until all are there: the kills shall find workers with their slots full.
            rig.sql("UPDATE tasks_kind SET paused_at = now(), paused_by = 'drill'")
            for kind in KINDS:
                rig.submit(plan.tasks // len(KINDS), kind)
            rig.sql("UPDATE tasks_kind SET paused_at = NULL, paused_by = ''")
            began = time.monotonic()
            kills = _kill(rig, plan, ledger, say)
            rig.wait_settled(plan.settle_seconds)
            seconds = time.monotonic() - began
            rig.unmanage()
            rig.cluster.terminate()
            rig.cluster.wait()
            return _report(rig, booked_in(ledger), kills, seconds)
    finally:
        shutil.rmtree(folder)


def _kill(rig: Rig, plan: Plan, ledger: Path, say: Callable[[str], None]) -> Counter[str]:
    """SIGKILL so many processes, mostly busy workers: by turns one after an effect and one before it."""
    dice, kills = random.Random(plan.seed), Counter[str]()
    while (turn := kills.total()) < plan.kills:
        time.sleep(dice.uniform(*plan.kill_every))
        anybody = turn % ANY_EVERY == ANY_EVERY - 1
        victim = _anybody(rig, dice) if anybody else _busy(rig, dice, ledger, after=turn % 2 == 0)
        if victim is None:
            continue
        role = _role(rig, victim)
        try:
            victim.kill()
        except psutil.NoSuchProcess:
            continue
        kills[role] += 1
        say(f"kill {role} {victim.pid}")
    return kills


def _anybody(rig: Rig, dice: random.Random) -> psutil.Process | None:
    tree = rig.cluster.processes()
    return dice.choice(tree) if len(tree) > 2 else None


def _busy(rig: Rig, dice: random.Random, ledger: Path, *, after: bool) -> psutil.Process:
    """A worker, stopped in the middle of an attempt after its effect, or before it; any one where no work is left."""

    def stopped() -> psutil.Process | None:
        running, left = dict(rig.sql(BUSY)), rig.sql(UNFINISHED)
        pids = running if left else rig.cluster.worker_pids()
        workers = [process for process in rig.cluster.processes() if process.pid in pids]
        if not workers or not left:
            return dice.choice(workers) if workers else None
        # What it is doing can be read once it has stopped.
        victim = dice.choice(workers)
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.suspend()
            booked = set(booked_in(ledger))
            if any((attempt in booked) == after for attempt in dict(rig.sql(BUSY)).get(victim.pid, ())):
                return victim
            victim.resume()
        return None

    return wait_until(stopped, "a worker in an attempt on that side of its effect")


def _role(rig: Rig, victim: psutil.Process) -> str:
    tree = rig.cluster.processes()
    if tree and victim.pid == tree[0].pid:
        return "main"
    found = rig.sql("SELECT role FROM tasks_workerprocess WHERE pid = %s ORDER BY id DESC LIMIT 1", victim.pid)
    return str(found[0][0]) if found else "sentinel"


def _report(rig: Rig, ledger: list[str], kills: Counter[str], seconds: float) -> Report:
    evidence = rig.evidence()
    booked = Counter(line.split()[0] for line in ledger)
    successes = {task: (count, at) for task, count, at in rig.sql(SUCCESSES)}
    reasons = dict(rig.sql("SELECT reason, count(*) FROM tasks_task WHERE reason <> '' GROUP BY reason"))
    unknown = [row[0] for row in rig.sql("SELECT id::text FROM tasks_task WHERE reason = 'outcome_unknown'")]
    rules: list[tuple[str, Iterable[str]]] = [
        ("lost", checker.lost(evidence)),
        ("effects that happened twice", [task for task, count in booked.items() if count > 1]),
        ("successes without an effect", sorted(successes.keys() - booked.keys())),
        ("two recorded successes", [task for task, (count, _) in successes.items() if count > 1]),
        ("claimed after a recorded success", _claimed_after(evidence, successes)),
        ("outcomes that stayed unknown", unknown),
        ("broken histories", checker.broken_histories(evidence)),
        ("attempts left running", checker.left_running(evidence)),
        ("attempts that overlap", checker.overlapping(evidence)),
    ]
    return Report(
        findings=[Finding(name, tuple(broken)) for name, broken in rules],
        kills=kills,
        events=Counter(event.type for event in evidence.events),
        statuses=dict(rig.sql("SELECT status, count(*) FROM tasks_task GROUP BY status")),
        reasons=reasons,
        effects=len(ledger),
        seconds=seconds,
        survivors=rig.cluster.survivors(),
    )


def _claimed_after(evidence: checker.Evidence, successes: dict[str, tuple[int, float]]) -> Iterable[str]:
    for attempt in evidence.attempts:
        if attempt.task in successes and attempt.started_at > successes[attempt.task][1]:
            yield f"{attempt.task}: attempt {attempt.id}"
