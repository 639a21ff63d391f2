"""Speed, as ratios within one run on one machine: ``python -m tests.benchmarks --help``. Never part of the tests."""
