"""The drills in full size, one by one: ``python -m tests.drills kill --seconds 600``; ``--help`` lists them.

Each prints a line for every promise, with its figures, and exits with 1 when one was broken. The short forms are tests.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

import django

#: Name -> module with ``add_arguments(parser)`` and ``main(chosen) -> bool``, whether every promise held.
DRILLS = {
    "kill": "tests.drills.kill",
    "proxy": "tests.drills.proxy",
    "poison": "tests.drills.poison",
    "reconcile": "tests.drills.reconcile",
    "stop": "tests.drills.stop",
    "clock": "tests.drills.clock",
    "control": "tests.drills.control",
}


def main() -> int:
    """Run the drill; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills", description=__doc__)
    drills = parser.add_subparsers(dest="drill", required=True)
    for name, place in DRILLS.items():
        module = importlib.import_module(place)
        summary = (module.__doc__ or "").partition("\n")[0]
        its = drills.add_parser(name, help=summary, description=summary)
        its.set_defaults(main=module.main)
        module.add_arguments(its)
    chosen = parser.parse_args()
    return 0 if chosen.main(chosen) else 1


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings_test")
    django.setup()
    sys.exit(main())
