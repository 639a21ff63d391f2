"""The steady trickle of demo tasks. It never spends money and never piles up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from uuid import UUID

from django.db import Error as DatabaseTrouble
from django.db import close_old_connections, connection, transaction
from django.db.models import QuerySet

from tasks import lifecycle
from tasks.demo.kinds import KINDS, kind_for
from tasks.demo.models import TrickledTask
from tasks.demo.place import DemoPlace
from tasks.demo.tickets import payload_for, tickets
from tasks.models import Kind, Provider, Task
from tasks.models.kind import UNFINISHED

logger = logging.getLogger(__name__)

TAG = "demo"
#: One task a second at first, so that a newcomer has something to look at; then one every three.
BRISK_SECONDS = 30.0
BRISK_INTERVAL = 1.0
CALM_INTERVAL = 3.0
#: With more unfinished tasks than this it waits: workers are stopped, or a person has paused the kinds.
MOST_UNFINISHED = 200


def submit_next(number: int) -> Task | None:
    """Submits task ``number`` (from 0) of the demo; None where its kind is gone or would call a real model."""
    name = kind_for(number, len(tickets()))
    place = number % len(tickets())
    with transaction.atomic():
        kind = _locked(name)
        if kind is None or not is_free(kind):
            return None
        ticket = tickets()[place]
        task = lifecycle.submit(
            name,
            payload_for(name, place),
            session_id=ticket["session"],
            user_id=ticket["customer"],
            tags=[TAG, ticket["channel"]],
        )
        TrickledTask.objects.create(task=task)
        return task


def _locked(name: str) -> Kind | None:
    """The kind, with its row and those of its providers locked until the commit, so that nobody changes them meanwhile.

    Whoever locks both locks the kind first. What was changed while we waited is seen: a locked row is read as it is
    then, and the providers are looked at (by the caller) after both locks.
    """
    kind = Kind.objects.select_for_update(no_key=True).filter(pk=name).first()
    if kind is not None:
        names = [provider for provider in (kind.provider_id, kind.backup_provider_id) if provider is not None]
        list(Provider.objects.select_for_update(no_key=True).filter(pk__in=names).order_by("pk").values_list("pk"))
    return kind


def is_free(kind: Kind) -> bool:
    """Whether the tasks of a kind can cost nothing: a prompt, and simulated providers only, the backup too."""
    providers = [provider for provider in (kind.provider, kind.backup_provider) if provider is not None]
    return kind.is_prompt and bool(providers) and all(provider.simulated for provider in providers)


def unfinished() -> int:
    """How many tasks of the trickle have not ended. Those that have, or that a person reprocessed, it forgets."""
    ours = _trickled()
    waiting = set(_open(ours).values_list("pk", flat=True))
    if ended := set(ours) - waiting:
        TrickledTask.objects.filter(pk__in=ended).delete()
    return len(waiting)


def withdraw_paid() -> set[UUID]:
    """Cancels unfinished tasks of the trickle whose kind a person has since given to a real provider; their ids.

    They would be paid for without having been asked for.
    """
    ours = _trickled()
    if not ours:
        return set()
    kinds = Kind.objects.filter(pk__in=list(KINDS)).select_related("provider", "backup_provider")
    paid = sorted(kind.pk for kind in kinds if not is_free(kind))
    ids = list(_open(ours).filter(kind__in=paid, cancel_requested_at=None).values_list("pk", flat=True))
    if not ids:
        return set()
    logger.info("Cancelled %d demo tasks: %s is not on a simulated provider any more.", len(ids), ", ".join(paid))
    return lifecycle.cancel(ids, actor="demo")


def _trickled() -> list[UUID]:
    """The ids that the demo keeps: at most one past the limit for each demo on this database, and what ended since."""
    return list(TrickledTask.objects.values_list("pk", flat=True))


def _open(ids: list[UUID]) -> QuerySet[Task]:
    return Task.objects.filter(pk__in=ids, status__in=UNFINISHED, cycle=1)


def submit_if_room(place: DemoPlace) -> Task | None:
    """Submits the next task, unless too many are unfinished; None where none was submitted."""
    withdraw_paid()
    if unfinished() > MOST_UNFINISHED:
        return None
    number = place.read("next")
    task = submit_next(number)
    place.keep(next=number + 1)
    return task


class Trickle(threading.Thread):
    """Submits tasks until ``stopping`` is set. A lost database is waited for; any other error ends it.

    A thread and not a part of the provider's loop: the database may block, the provider has to answer meanwhile.
    ``ended`` is called when it ends by an error, which is then in ``failure``.
    """

    def __init__(self, place: DemoPlace, ended: Callable[[], object]) -> None:
        super().__init__(name="trickle", daemon=True)
        self.stopping = threading.Event()
        self.failure: Exception | None = None
        self._place = place
        self._ended = ended

    def run(self) -> None:
        """The thread's work."""
        try:
            self._trickle()
        except Exception as error:  # Carried to the main thread, which reports it and ends.
            self.failure = error
            if not self.stopping.is_set():
                self._ended()
        finally:
            connection.close()

    def _trickle(self) -> None:
        started = time.monotonic()
        while not self.stopping.wait(interval(time.monotonic() - started)):
            try:
                close_old_connections()
                submit_if_room(self._place)
            except DatabaseTrouble as error:
                logger.warning("No demo task was submitted, the database did not take it: %s", error)


def interval(elapsed: float) -> float:
    """Seconds until the next task, ``elapsed`` seconds after the start."""
    return BRISK_INTERVAL if elapsed < BRISK_SECONDS else CALM_INTERVAL
