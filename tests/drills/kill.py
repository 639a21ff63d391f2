"""The kill drill: tasks run while everything that runs them is killed, frozen, cut off or restarted."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.drills.census import Census, replacements
from tests.drills.chaos import Chaos
from tests.drills.checker import Evidence, Finding, check, figure, repeated
from tests.drills.report import say, told
from tests.drills.rig import Rig

#: A process is replaced within this time; and so soon a task starts after the last kill.
REPLACED_SECONDS = 3.0
START_LIMIT_SECONDS = 5.0


@dataclass(frozen=True)
class Plan:
    """How large a drill is. Times in seconds."""

    tasks: int = 300
    workers: int = 2
    slots: int = 10
    lease: float = 4.0
    drain: float = 5.0
    #: How long a call takes, in milliseconds.
    delay: str = "500-3000"
    #: Each for twice the lease.
    freezes: int = 1
    #: How long PostgreSQL is away each time, without anything else going on.
    outages: tuple[float, ...] = (2.0,)
    #: How long all sessions are ended, every 20 s.
    sessions_seconds: float = 3.0
    kill_seconds: float = 50.0
    kill_every: tuple[float, float] = (2.0, 2.0)
    least_kills: int = 15
    #: Spare main, sentinel and caretaker: each kill is a death that a sentinel saw.
    only_workers: bool = False
    #: Immediate restarts of PostgreSQL while processes are killed.
    restarts: int = 1
    seed: int = 1
    settle_seconds: float = 90.0


FULL = Plan(
    tasks=5_000,
    workers=4,
    lease=12.0,
    drain=20.0,
    freezes=5,
    outages=(2.0, 5.0, 9.0, 18.0, 28.0, 40.0),
    sessions_seconds=120.0,
    kill_seconds=600.0,
    kill_every=(1.0, 2.0),
    restarts=3,
    seed=7,
    settle_seconds=300.0,
)


@dataclass
class Report:
    """What came of a drill. ``findings``: the checker's; ``figures``: what was measured against a promise."""

    findings: list[Finding]
    figures: list[Finding]
    kills: dict[str, int]
    mains_restarted: int
    late_saves_refused: int
    probe_seconds: float
    #: How long this machine, as busy as it is, takes to start a cluster: what times are measured against.
    start_seconds: float
    orphan_seconds: float | None
    lease_expired: int
    statuses: dict[str, int]
    survivors: list[int]
    evidence: Evidence = field(repr=False)

    def more(self) -> list[str]:
        """What is worth a line and no promise."""
        return [
            f"kills: {self.kills}, mains restarted: {self.mains_restarted}, ends: {self.statuses}",
            f"a cluster starts here in {self.start_seconds:.1f} s; the first orphan ran again after"
            f" {self.orphan_seconds} s",
        ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of ``python -m tests.drills kill``."""
    parser.add_argument("--short", action="store_true", help="the size that runs as a test; the rest is then ignored")
    parser.add_argument("--seconds", type=float, default=FULL.kill_seconds, help="how long to kill")
    parser.add_argument("--every", type=float, nargs=2, default=FULL.kill_every, help="between two kills: least, most")
    parser.add_argument("--only-workers", action="store_true", help="spare main, sentinel and caretaker")
    parser.add_argument("--tasks", type=int, default=FULL.tasks)
    parser.add_argument("--workers", type=int, default=FULL.workers)
    parser.add_argument("--slots", type=int, default=FULL.slots)
    parser.add_argument("--lease", type=float, default=FULL.lease)
    parser.add_argument("--delay", default=FULL.delay, help="of a call, in milliseconds: least-most")
    parser.add_argument("--freezes", type=int, default=FULL.freezes, help="of a worker, each for twice the lease")
    parser.add_argument("--outages", type=float, nargs="*", default=FULL.outages, help="seconds without PostgreSQL")
    parser.add_argument("--sessions", type=float, default=FULL.sessions_seconds, help="how long to end sessions")
    parser.add_argument("--restarts", type=int, default=FULL.restarts, help="of PostgreSQL between the kills")
    parser.add_argument("--seed", type=int, default=FULL.seed)


def main(chosen: argparse.Namespace) -> bool:
    """The drill from the command line; whether every promise held."""
    plan = Plan(
        tasks=chosen.tasks,
        workers=chosen.workers,
        slots=chosen.slots,
        lease=chosen.lease,
        drain=FULL.drain,
        delay=chosen.delay,
        freezes=chosen.freezes,
        outages=tuple(chosen.outages),
        sessions_seconds=chosen.sessions,
        kill_seconds=chosen.seconds,
        kill_every=tuple(chosen.every),
        least_kills=0,
        only_workers=chosen.only_workers,
        restarts=chosen.restarts,
        seed=chosen.seed,
        settle_seconds=FULL.settle_seconds,
    )
    report = run(Plan() if chosen.short else plan)
    return told([*report.findings, *report.figures], *report.more())


def run(plan: Plan, command: tuple[str, ...] = ("manage.py", "qcluster"), say: Callable[[str], None] = say) -> Report:
    """Run the drill and read what it left."""
    settings = {
        "REDRIVE_LEASE_SECONDS": plan.lease,
        "REDRIVE_DRAIN_SECONDS": plan.drain,
        "REDRIVE_SLOTS": plan.slots,
        "REDRIVE_WORKERS": plan.workers,
        # Longer than any freeze: a frozen worker shall wake up and try to save, not be killed.
        "REDRIVE_WATCHDOG_SECONDS": 60,
    }
    with Rig(path=f"/delay/{plan.delay}", command=command, **settings) as rig, Census(rig) as census:
        chaos = Chaos(rig, plan.seed, say)
        _all_phases(plan, rig, chaos)
        probe = chaos.probe()
        settled = rig.wait_settled(plan.settle_seconds)
        rig.unmanage()
        rig.cluster.terminate()
        rig.cluster.wait()
        return _report(plan, rig, chaos, census, probe, settled)


def _all_phases(plan: Plan, rig: Rig, chaos: Chaos) -> None:
    """A third of the tasks before the kills, in equal parts for each trouble; the rest while processes are killed."""
    troubles = plan.freezes + len(plan.outages) + (1 if plan.sessions_seconds else 0)
    share = (plan.tasks // 3 if plan.kill_seconds else plan.tasks - 1) // max(1, troubles)
    for seconds in plan.outages:
        chaos.outage(share, seconds, plan.settle_seconds)
    if plan.sessions_seconds:
        chaos.end_sessions(share, plan.sessions_seconds, plan.settle_seconds)
    for _ in range(plan.freezes):
        chaos.freeze(share, 2 * plan.lease, plan.slots // 2)
    if plan.kill_seconds:
        chaos.kill(
            plan.tasks - len(rig.submitted) - 1,
            plan.kill_seconds,
            plan.kill_every,
            at_least=plan.least_kills,
            restarts=plan.restarts,
            only_workers=plan.only_workers,
        )


def _report(plan: Plan, rig: Rig, chaos: Chaos, census: Census, probe_seconds: float, settled: float) -> Report:
    evidence = rig.evidence()
    roles = [kill.role for kill in chaos.kills]
    ((refused,),) = rig.sql("SELECT coalesce(sum(late_saves_refused), 0)::int FROM tasks_workerprocess")
    statuses = dict(rig.sql("SELECT status, count(*) FROM tasks_task GROUP BY status"))
    ((expired,),) = rig.sql("SELECT count(*) FROM tasks_task WHERE reason = 'lease_expired'")
    survivors = sorted({*rig.cluster.survivors(), *census.orphans})
    figures = [
        *_of_the_database(plan, evidence, chaos),
        figure("late saves refused", refused, refused > 0 or not plan.freezes),
        figure("innocent tasks dead as lease_expired", expired, expired == 0),
        _replaced(rig, chaos, census),
        figure("processes that outlived their tree", len(survivors), not survivors),
        figure("seconds from the last kill until all had ended", round(settled, 1), settled < plan.settle_seconds),
        figure(
            "seconds until a task submitted after the last kill started",
            round(probe_seconds, 2),
            probe_seconds < max(START_LIMIT_SECONDS, 2 * rig.start_seconds),
        ),
    ]
    return Report(
        findings=check(evidence),
        figures=figures,
        kills={role: roles.count(role) for role in sorted(set(roles))},
        mains_restarted=rig.restarts,
        late_saves_refused=refused,
        probe_seconds=probe_seconds,
        start_seconds=rig.start_seconds,
        orphan_seconds=_first_orphan(rig, chaos),
        lease_expired=expired,
        statuses=statuses,
        survivors=survivors,
        evidence=evidence,
    )


def _of_the_database(plan: Plan, evidence: Evidence, chaos: Chaos) -> list[Finding]:
    """Calls that were made again for an outage, of each length, and for sessions that were ended."""
    found = []
    for words, outages in (
        ("shorter than the lease", [outage for outage in chaos.outages if outage.seconds < plan.lease]),
        ("longer than the lease", [outage for outage in chaos.outages if outage.seconds >= plan.lease]),
    ):
        again = repeated(evidence, [task for outage in outages for task in outage.tasks])
        times = ", ".join(f"{outage.seconds:.0f}" for outage in outages)
        found.append(Finding(f"calls repeated for outages {words} ({times} s)", again))
    again = repeated(evidence, chaos.cut)
    found.append(Finding(f"calls repeated for {chaos.sessions_ended} ended sessions", again))
    return found


def _replaced(rig: Rig, chaos: Chaos, census: Census) -> Finding:
    """How soon another process ran in the place of each that was killed under a living sentinel."""
    over = max((kill.at for kill in chaos.kills), default=0.0) + REPLACED_SECONDS
    seconds = replacements(chaos.kills, list(census.births.values()), over)
    longest = max(seconds.values(), default=0.0)
    limit = max(REPLACED_SECONDS, rig.start_seconds)
    return figure(f"longest of {len(seconds)} replacements, in seconds", round(longest, 2), longest < limit)


def _first_orphan(rig: Rig, chaos: Chaos) -> float | None:
    """Seconds from the first kill that took running tasks along until one of them ran again."""
    for kill in chaos.kills:
        found = rig.sql(
            "SELECT min(extract(epoch FROM later.started_at)::float8) FROM tasks_attempt lost"
            " JOIN tasks_workerprocess w ON w.id = lost.worker_id"
            " JOIN tasks_attempt later ON later.task_id = lost.task_id AND later.id > lost.id"
            " WHERE lost.outcome = 'lost' AND w.pid = %s AND extract(epoch FROM later.started_at) > %s"
            " AND extract(epoch FROM lost.started_at) < %s",
            kill.pid, kill.at, kill.at,
        )  # fmt: skip
        if found[0][0] is not None:
            return round(found[0][0] - kill.at, 2)
    return None
