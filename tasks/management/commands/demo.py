"""``manage.py demo``: the simulated provider and a trickle of tasks for it, in one foreground process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection

from tasks.demo.configure import configure
from tasks.demo.place import DemoPlace
from tasks.demo.provider import SimulatedProvider, serve
from tasks.demo.trickle import Trickle
from tasks.embedded.lock import Locked, exclusive

LOCK_FILE = "demo.lock"
#: How long a task that is being submitted may hold up the end.
LAST_TASK_SECONDS = 1.0


class Command(BaseCommand):
    """Runs until SIGTERM or SIGINT; prints ``demo: ready`` once it serves."""

    help = (
        "Run the demo: a simulated LLM provider, three kinds, and a trickle of tickets. It never spends money. To try a"
        " real model, start it with OPENAI_API_KEY (or OPENAI_API_KEY_FILE) set: a provider 'openai' is there then, at"
        " OPENAI_BASE_URL if that is set when it is first made. Give it to a kind in the admin, and choose the model"
        " there: the kind's field 'model' decides. OPENAI_MODEL is only the name that the demo proposes at its start."
    )
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Raises CommandError when another demo runs here, the database is not to be had, or the trickle broke."""
        folder = settings.REDRIVE_DATA_DIR
        place = DemoPlace(folder)
        try:
            with exclusive(folder / LOCK_FILE, seconds=0):
                self._run(place)
        except Locked:
            raise CommandError(f"Another 'manage.py demo' runs on {folder}; stop it first.") from None

    def _run(self, place: DemoPlace) -> None:
        with place.listen() as listener:
            base_url = f"http://127.0.0.1:{listener.getsockname()[1]}/fault/demo/v1"
            try:
                notes = configure(base_url, os.environ)
            except OperationalError as error:
                raise CommandError(f"The demo needs the database: {error}") from error
            connection.close()  # From here on only the trickle's thread talks to it.
            for line in (f"simulated provider: {base_url}", *notes):
                self.stdout.write(line)
            trickles: list[Trickle] = []

            def ready(stop: Callable[[], object]) -> None:
                trickles.append(Trickle(place, stop))
                trickles[0].start()
                self.stdout.write("demo: ready")
                self.stdout.flush()

            asyncio.run(serve(SimulatedProvider(), ready, listener))
        self._end(trickles)

    def _end(self, trickles: list[Trickle]) -> None:
        for trickle in trickles:
            trickle.stopping.set()
            trickle.join(LAST_TASK_SECONDS)
            if trickle.failure is not None:
                raise CommandError(f"The trickle of demo tasks broke: {trickle.failure!r}") from trickle.failure
