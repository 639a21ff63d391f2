"""One part of the system: a child process that is started again when it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasks.embedded.spawn import spawn
from tasks.supervise.output import Output

FIRST_DELAY = 0.5
LONGEST_DELAY = 10.0
#: A part that lived this long is taken to be well: its next death is met with the first delay again.
WELL_AFTER = 30.0


@dataclass
class Part:
    """A program and what to know about running it.

    ``patience``: seconds between SIGTERM and SIGKILL. ``last_signal``: what the kernel sends it should we be killed.
    ``heard``: is called with each line of its standard output, which otherwise goes where ours goes. ``inherits``: file
    descriptors that it is given. ``stops_last``: it is asked to stop once the others have.
    """

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    patience: float = 5.0
    last_signal: signal.Signals = signal.SIGTERM
    heard: Callable[[str], None] | None = None
    inherits: Sequence[int] = ()
    stops_last: bool = False
    process: subprocess.Popen[bytes] | None = None
    _output: Output | None = None
    _delay: float = FIRST_DELAY
    _started_at: float = 0.0
    _due_at: float = 0.0
    #: Process groups that we started and that may still have members, should a part die before its own children.
    _groups: set[int] = field(default_factory=set)

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self.process is not None and self.process.poll() is None

    def tend(self) -> str | None:
        """Start it where it does not run and is due.

        Returns a sentence when it was found dead or could not be started, else None.
        """
        self._groups = {group for group in self._groups if _has_members(group)}
        now = time.monotonic()
        if self.process is None:
            return self._start(now) if now >= self._due_at else None
        code = self.process.poll()
        if code is None:
            return None
        lived = now - self._started_at
        self._delay = FIRST_DELAY if lived >= WELL_AFTER else self._delay
        self._forget()
        return f"{self.name} {_ending(code)} after {lived:.1f} s; next start in {self._put_off(now):g} s"

    def listen(self) -> None:
        """Pass on the lines of its output that have arrived."""
        if self._output and self.heard:
            for line in self._output.lines():
                self.heard(line)

    def terminate(self) -> None:
        """Ask it to stop."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and whatever it started in its process group, at once."""
        groups = self._groups | ({self.process.pid} if self.process else set())
        for group in groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                # Nobody is left, or (macOS) only zombies are.
                continue
        if self.process:
            self.process.wait()
        self._forget()
        self._groups.clear()

    def _start(self, now: float) -> str | None:
        """A machine that is short of processes, memory or open files for a moment is no reason for all to end."""
        try:
            self.process = spawn(
                self.argv,
                environment=self.environment,
                directory=self.directory,
                stdout=subprocess.PIPE if self.heard else None,
                last_signal=self.last_signal,
                inherits=self.inherits,
            )
        except OSError as error:
            return f"{self.name} cannot be started ({error.strerror or error}); next try in {self._put_off(now):g} s"
        self._output = Output(self.process.stdout) if self.process.stdout else None
        self._started_at = now
        self._groups.add(self.process.pid)
        return None

    def _put_off(self, now: float) -> float:
        """Put the next start off; the seconds until then, each time twice as many."""
        delay, self._due_at = self._delay, now + self._delay
        self._delay = min(delay * 2, LONGEST_DELAY)
        return delay

    def _forget(self) -> None:
        self.listen()
        if self._output:
            self._output.close()
        self._output, self.process = None, None


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _ending(code: int) -> str:
    return f"ended with code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
