"""Keeps the parts alive until it is asked to stop, then stops them in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tasks.embedded.errors import EmbeddedError
from tasks.embedded.server import EmbeddedServer
from tasks.supervise.part import Part
from tasks.supervise.signals import StopSignals

TICK = 0.2
#: After so many seconds without being ready we say what we wait for, and again after as many more.
PATIENCE = 20.0
#: So long after a failure the database is looked after again.
DATABASE_PAUSE = 5.0


class Supervisor:
    """Runs ``parts`` over ``database`` (None: it is somebody else's to run).

    ``say`` gets a sentence for a person about each event.
    """

    def __init__(
        self, parts: Sequence[Part], database: EmbeddedServer | None, signals: StopSignals, say: Callable[[str], None]
    ) -> None:
        self.parts = list(parts)
        self.database = database
        self.signals = signals
        self.say = say
        self._retry_database_at = 0.0

    def run(self, missing: Callable[[], str | None], announce: Callable[[], None]) -> None:
        """Tend everything until a signal says stop.

        ``missing`` names what is not ready yet (None: nothing); ``announce`` is called once, when all parts live and
        nothing is missing. Who waits long is told for what.
        """
        announced, tell_at = False, time.monotonic() + PATIENCE
        while not self.signals.stop:
            self._tend()
            if not announced:
                lacking = self._dead() or missing()
                if lacking is None:
                    announce()
                    announced = True
                elif time.monotonic() > tell_at:
                    self.say(f"not ready yet: waiting for {lacking}")
                    tell_at += PATIENCE
            self.signals.wait(TICK)

    def stop(self) -> None:
        """Stop the parts, each with its patience; a second signal kills what is left.

        All at once, as no one's time is to add to another's, but those that the others need to the end.
        """
        self._stop([part for part in self.parts if not part.stops_last])
        self._stop([part for part in self.parts if part.stops_last])

    def _stop(self, parts: Sequence[Part]) -> None:
        asked_at = time.monotonic()
        for part in parts:
            part.terminate()
        for part in parts:
            self._await_end(part, asked_at + part.patience)
            part.kill()

    def _dead(self) -> str | None:
        return next((part.name for part in self.parts if not part.alive), None)

    def _tend(self) -> None:
        self._tend_database()
        for part in self.parts:
            part.listen()
            if said := part.tend():
                self.say(said)

    def _tend_database(self) -> None:
        if self.database is None or time.monotonic() < self._retry_database_at:
            return
        try:
            if self.database.pid is None:
                self.say("the database is down; it starts again")
                # A database that vanished is not replaced by an empty one.
                self.database.start(create=False)
        except (EmbeddedError, OSError) as error:
            # An OSError: the machine is short of processes or open files, and whether the database is up is not known.
            prefix = "the database cannot be looked after: " if isinstance(error, OSError) else ""
            self.say(f"{prefix}{error}")
            self._retry_database_at = time.monotonic() + DATABASE_PAUSE

    def _await_end(self, part: Part, deadline: float) -> None:
        while part.alive and not self.signals.hurry:
            for each in self.parts:
                each.listen()
            if time.monotonic() > deadline:
                self.say(f"{part.name} did not stop within {part.patience:g} s and is killed")
                return
            self.signals.wait(0.05)
