"""As its documentation says, with a connection that is kept."""

import os

from tests.stock import CLUSTER, DEFAULT_AUTO_FIELD, INSTALLED_APPS, LOGGING, USE_TZ, databases

__all__ = ["DATABASES", "DEFAULT_AUTO_FIELD", "INSTALLED_APPS", "LOGGING", "Q_CLUSTER", "SECRET_KEY", "USE_TZ"]

SECRET_KEY = "only-for-benchmarks"
DATABASES = databases(os.environ["BENCH_DSN"])
Q_CLUSTER = {
    **CLUSTER,
    "workers": int(os.environ.get("BENCH_WORKERS", "2")),
    "bulk": 50,
    "queue_limit": 500,
    "timeout": 60,
    "retry": 120,
    "poll": 0.05,
}
