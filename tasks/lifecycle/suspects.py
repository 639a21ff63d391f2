"""Does a task kill the processes that run it, or was it in them when something else killed? The whole rule.

From outside, a process that its task killed looks like one that was killed. What tells the two apart is whether
processes die as well that never ran the task. So:

1. The second death that a sentinel saw under a task makes it a **suspect**. A killed tree or host, whose losses are
   silent, is no evidence.
2. A suspect runs only in a process that holds no other suspect, so that none is condemned for what another does.
3. It waits, quiet for ``quiet_seconds``: since its own last death, so that what kills at random has had the time to
   strike elsewhere, and since the last unrest. After ``patience_seconds`` it runs all the same.
   **Unrest**, to a suspect, is a process lost that never ran it, or a cluster that has just come (back) to the
   database: whatever died before that is not known yet.
4. The third death condemns it, or any later one, if no unrest came before. With unrest the death proves nothing, and
   it waits again.
5. The tenth condemns it whatever else dies: nobody could tell any more, and each costs a process.
6. A condemned task never runs again. Its work may have happened all the same: where its handler can be asked, it is,
   once for as long as the process that asks lives, which asks about no other condemned one meanwhile. One that a
   sentinel sees die while it asks is the end: the asking kills, too, or nobody can tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.conf import settings
from django.db import connection

from tasks.lifecycle.moves import Locked

#: So many deaths make a task a suspect (the claim and its index have the number in their SQL).
SUSPECT = 2
#: So many deaths condemn a task if no unrest came before the last of them, and so many in any case.
DEATHS = 3
DEATHS_IN_UNREST = 10

#: Processes lost not long before ``until``. A silent loss is older than its mark: those known by now all count.
LOST = """
SELECT w.id FROM tasks_workerprocess w
WHERE w.lost_at > {until} - %(quiet)s * interval '1 second' AND (w.exit_seen_at IS NULL OR w.exit_seen_at < {until})
"""
UNREST = """(
    EXISTS (SELECT 1 FROM tasks_clustercontact c WHERE c.contact_since > {until} - %(quiet)s * interval '1 second')
    OR EXISTS (SELECT 1 FROM {lost} AS w WHERE NOT EXISTS (
        SELECT 1 FROM tasks_attempt a WHERE a.task_id = {task} AND a.worker_id = w.id)))"""
CONDEMNED = f"""
SELECT t.id FROM tasks_task t JOIN tasks_workerprocess own ON own.id = t.worker_id
WHERE t.id = ANY(%(suspects)s) AND (
    t.rescues + 1 >= {DEATHS_IN_UNREST}
    OR NOT {UNREST.format(task="t.id", until="own.exit_seen_at", lost=f"({LOST.format(until='own.exit_seen_at')})")})
"""  # noqa: S608 - our own words

#: Of an unknown task ``t``: whether it was condemned, and whether a process died while it asked about it. The history
#: tells both, of this cycle, as a condemned task does not run again in it; it is not read for those that cannot be.
WAS_CONDEMNED = f"""(t.rescues >= {DEATHS} AND EXISTS (
    SELECT 1 FROM tasks_taskevent e WHERE e.task_id = t.id AND e.cycle = t.cycle AND e.type = 'rescued'
      AND e.data ->> 'condemned' = 'true'))"""  # noqa: S608 - our own words
DIED_ASKING = """(t.asks > 0 AND EXISTS (
    SELECT 1 FROM tasks_taskevent e JOIN tasks_workerprocess w ON w.id = (e.data ->> 'worker')::bigint
    WHERE e.task_id = t.id AND e.cycle = t.cycle AND e.type = 'asking'
      AND w.exit_seen_at IS NOT NULL AND w.stopped_at IS NULL
      AND NOT EXISTS (
        SELECT 1 FROM tasks_taskevent l WHERE l.task_id = t.id AND l.seq > e.seq AND l.type IN ('asking', 'asked'))))"""
VERDICTS = f"SELECT t.id, {DIED_ASKING} FROM tasks_task t WHERE t.id = ANY(%s) AND {WAS_CONDEMNED}"  # noqa: S608 - our own words

#: Parts of the claim, where ``s`` is a suspect that is ready. What was lost is looked up once, not for each of them.
JUST_LOST = LOST.format(until="now()")
MAY_RUN = f"""(s.status_at < now() - %(patience)s * interval '1 second' OR (
    s.status_at < now() - %(quiet)s * interval '1 second'
    AND NOT {UNREST.format(task="s.id", until="now()", lost="just_lost")}))"""


def quiet_seconds() -> float:
    """How long nothing else must have died. A killed tree is back before the loss of its workers, whose leases must
    run out, is known: longer than that."""
    return float(2 * settings.REDRIVE_LEASE_SECONDS + 2)


def patience_seconds() -> float:
    """How long a suspect waits in vain for quiet."""
    return max(60.0, 2 * quiet_seconds())


def condemned(rows: Iterable[Locked]) -> set[UUID]:
    """Which of these running tasks, whose processes' deaths were seen just now and are not counted yet, must die."""
    suspects = [row.id for row in rows if row.rescues + 1 >= DEATHS]
    if not suspects:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(CONDEMNED, {"suspects": suspects, "quiet": quiet_seconds()})
        return {row[0] for row in cursor.fetchall()}


def verdicts(unknown: Iterable[UUID]) -> dict[UUID, bool]:
    """Those of these unknown tasks that were condemned; True where a process died while it asked about one."""
    with connection.cursor() as cursor:
        cursor.execute(VERDICTS, [list(unknown)])
        return dict(cursor.fetchall())
