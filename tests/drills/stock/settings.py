"""As its documentation advises for work that must not be lost: a retry that is longer than the timeout."""

import os

from tests.stock import CLUSTER, DEFAULT_AUTO_FIELD, INSTALLED_APPS, LOGGING, USE_TZ, databases

__all__ = ["DATABASES", "DEFAULT_AUTO_FIELD", "INSTALLED_APPS", "LOGGING", "Q_CLUSTER", "SECRET_KEY", "USE_TZ"]

SECRET_KEY = "only-for-drills"
DATABASES = databases(os.environ["DRILL_DSN"])
Q_CLUSTER = {
    **CLUSTER,
    "workers": int(os.environ.get("DRILL_WORKERS", "4")),
    "timeout": 20,
    "retry": 30,
    "ack_failures": False,
    "poll": 0.2,
}
