"""``python -m tests.benchmarks empty``: one benchmark, or ``all``. ``--share 0.1`` for a look, 1 for a figure."""

from __future__ import annotations

import argparse
import sys

from tests.benchmarks import calls, claims, empty, latency, sleepers, submits
from tests.benchmarks.bench import server

BENCHMARKS = {
    "empty": empty.measure,
    "submit": submits.measure,
    "sleepers": sleepers.measure,
    "calls": calls.measure,
    "latency": latency.measure,
    "claims": claims.measure,
}


def main() -> None:
    """Print lines as they come."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("benchmark", choices=[*BENCHMARKS, "all"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the full sizes")
    parser.add_argument("--only", default="", help="one engine")
    chosen = parser.parse_args()
    names = list(BENCHMARKS) if chosen.benchmark == "all" else [chosen.benchmark]
    with server() as running:
        for name in names:
            for line in BENCHMARKS[name](running, rounds=chosen.rounds, share=chosen.share, only=chosen.only):
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
