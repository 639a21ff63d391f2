#!/usr/bin/env python
"""Run a management command of Redrive."""

import os
import signal
import sys


def main() -> None:
    """Run the command. Ctrl-C, also while the modules still load, ends it with exit code 130 and no traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        leave_at_once_while_loading()
        run()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    finally:
        drop_what_cannot_be_said()


def leave_at_once_while_loading() -> None:
    """Until ``mind_ctrl_c``, Ctrl-C ends the process there and then.

    An exception would be swallowed, with a traceback on the terminal, where the import of a module runs a finalizer.
    What came while Python itself started, and ``up`` held back over its exec, is heard now.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(128 + number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def mind_ctrl_c() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt, so that a command can put its things in order."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def drop_what_cannot_be_said() -> None:
    """Where the standard error is full, Python's last flush fails and would put 120 in the place of the exit code."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def run() -> None:
    """Run the command; what the person can mend is a sentence and exit code 1, with --traceback the whole story."""
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import BaseCommand, ManagementUtility
    from django.db import OperationalError

    class Utility(ManagementUtility):
        def fetch_command(self, subcommand: str) -> BaseCommand:
            command = super().fetch_command(subcommand)
            mind_ctrl_c()
            return command

    try:
        Utility(sys.argv).execute()
    except (ImproperlyConfigured, ModuleNotFoundError, OperationalError) as error:
        sentence = explain(error)
        if "--traceback" in sys.argv or not sentence:
            raise
        sys.exit(sentence)


def explain(error: Exception) -> str:
    """What to tell the person; empty where the fault is in code and the traceback is the answer."""
    from django.db import OperationalError

    if isinstance(error, OperationalError):
        return f"The database cannot be used: {error}"
    if isinstance(error, ModuleNotFoundError):
        # A module that an app of REDRIVE_APPS imports and does not find is that app's fault, not the setting's.
        return f"REDRIVE_APPS names {error.name}, which cannot be imported." if _named_as_app(error.name or "") else ""
    return str(error)


def _named_as_app(module: str) -> bool:
    from config import env

    return any(f"{app}.".startswith(f"{module}.") for app in env.words("REDRIVE_APPS") if module)


if __name__ == "__main__":
    main()
