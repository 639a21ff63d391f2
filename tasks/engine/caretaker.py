"""The caretaker: one process per cluster that makes time and death move tasks. Any number may run at once."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.conf import settings
from django.db import DatabaseError, connection

from tasks import lifecycle, tally
from tasks.engine import lease, registry
from tasks.engine.silence import LOOK_SECONDS, Silence
from tasks.engine.trouble import Trouble, trouble

logger = logging.getLogger(__name__)
TICK_SECONDS = 0.25
RETRY_SECONDS = 0.5
DUE_SECONDS = 0.25
SETTLE_SECONDS = 1.0
EXPIRE_SECONDS = 2.0
REALIGN_SECONDS = 2.0
FOLD_SECONDS = 5.0
FORGET_SECONDS = 60.0
RESCUE_SEEN_SECONDS = 0.5
#: How long the last act may wait for rows that a worker's broken-off save still locks.
LAST_SECONDS = 2.0
LAST_TICK_SECONDS = 0.05


@dataclass(slots=True)
class Duty:
    """Something to do every so often. ``do`` returns True while there is more of it at once."""

    every: float
    do: Callable[[], bool]
    due_at: float = field(default=0.0)


class Caretaker:
    """Due moves, expiry, rescue. Every duty is one short transaction that skips rows which others hold."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.lease_seconds: float = settings.REDRIVE_LEASE_SECONDS
        #: Set by a signal handler: a plain value, as the handler may run while the loop holds any lock.
        self.stopping = False
        self._worker_id: int | None = None
        self._silence = Silence()
        self._duties = [
            Duty(self.lease_seconds / 4, self._beat),
            Duty(DUE_SECONDS, lambda: bool(lifecycle.make_due())),
            Duty(RESCUE_SEEN_SECONDS, self._rescue),
            Duty(SETTLE_SECONDS, lambda: bool(lifecycle.settle_unknown(registry.reconcilers()))),
            Duty(EXPIRE_SECONDS, lambda: bool(lifecycle.expire())),
            Duty(REALIGN_SECONDS, lambda: bool(lifecycle.realign())),
            Duty(FOLD_SECONDS, lambda: tally.fold() == tally.BATCH),
            Duty(FORGET_SECONDS, lambda: bool(lifecycle.forget_charges())),
            Duty(FORGET_SECONDS, lambda: bool(lifecycle.clear_places())),
        ]

    def run(self) -> None:
        """Do the duties until stopped; a lost database is waited for."""
        threading.Thread(target=self._watch, name="silence", daemon=True).start()
        while not self.stopping:
            if not self._round():
                time.sleep(RETRY_SECONDS)
            elif time.monotonic() < min(duty.due_at for duty in self._duties):
                time.sleep(TICK_SECONDS)
        self._leave()

    def _round(self) -> bool:
        """Do what is due; False when the database is away, which ends the round."""
        for duty in self._duties:
            if time.monotonic() >= duty.due_at and not self.stopping and not self._perform(duty):
                return False
        return True

    def stop(self, *_: object) -> None:
        """Leave after what is being done. Fit to be a signal handler."""
        self.stopping = True

    def _perform(self, duty: Duty) -> bool:
        more = False
        try:
            with self._silence:
                more = duty.do()
        except Exception as error:
            connection.close()
            if trouble(error) is Trouble.AWAY:
                logger.warning("The caretaker has no database (%s); trying again.", error)
                return False
            # The other duties must not wait for this one.
            logger.exception("A duty of the caretaker failed; it is tried again.")
        duty.due_at = time.monotonic() + (0.0 if more else duty.every)
        return True

    def _watch(self) -> None:
        while not self.stopping:
            time.sleep(LOOK_SECONDS)
            self._silence.look()

    def _beat(self) -> bool:
        if self._worker_id is None or not lease.beat(self._worker_id, 0):
            self._worker_id = lease.register("caretaker", self.cluster, 0, [])
        return False

    def _rescue(self) -> bool:
        # Asked anew each time: a figure from before an outage, or from before this machine slept, would condemn workers
        # whose leases ran out meanwhile and who are about to renew them.
        contact = lease.touch_contact(lease.contact_name(self.cluster), self.lease_seconds / 4)
        lost = lifecycle.mark_lost(leases_count=contact >= self.lease_seconds)
        if lost:
            logger.warning("Worker processes lost: %s. Their tasks are taken back.", lost)
        return bool(lifecycle.rescue(registry.reconcilers()))

    def _leave(self) -> None:
        try:
            self._clear_up()
            if self._worker_id is not None:
                lease.stop(self._worker_id)
        except DatabaseError as error:
            logger.warning("The caretaker left without saying so in the database (%s).", error)
        connection.close()

    def _clear_up(self) -> None:
        """The workers of this cluster have left: decide what they left, as nobody else may come for a long time."""
        lifecycle.mark_lost(leases_count=False)
        deadline = time.monotonic() + LAST_SECONDS
        known = registry.reconcilers()
        while lifecycle.rescue(known) or (lifecycle.has_orphans() and time.monotonic() < deadline):
            time.sleep(LAST_TICK_SECONDS)
        lifecycle.settle_unknown(known)


def caretaker_process(cluster: str) -> None:
    """The whole life of the caretaker, called in the child that the sentinel started."""
    caretaker = Caretaker(cluster)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, caretaker.stop)
    caretaker.run()
