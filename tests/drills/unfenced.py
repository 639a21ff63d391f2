"""A cluster whose fence is taken out, to see that the checker notices. Lives in the tests only: no product switch.

``python -m tests.drills.unfenced qcluster`` is ``manage.py qcluster`` that stores late ends as if they were in time.
"""

from __future__ import annotations

import importlib
import os
import sys

import django


def remove_the_fence() -> None:
    """Let every end through, whoever the task belongs to by now."""
    # By name: the package exports a function of the module's name.
    finish, moves = (importlib.import_module(f"tasks.lifecycle.{name}") for name in ("finish", "moves"))
    fence = "WHERE t.id = m.id AND t.status = m.from_status AND t.attempt_id IS NOT DISTINCT FROM m.attempt_id"
    if fence not in moves.APPLY:
        raise SystemExit("The fence has moved: mend tests/drills/unfenced.py.")
    moves.APPLY = moves.APPLY.replace(fence, "WHERE t.id = m.id")
    finish._is_ours = lambda row, worker_id, end: row is not None


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    remove_the_fence()
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *sys.argv[1:]])
