"""As its documentation says, with a connection that is kept: by default it opens one for each task."""

import os

from psycopg.conninfo import conninfo_to_dict

PARTS = conninfo_to_dict(os.environ["BENCH_DSN"])
SECRET_KEY = "only-for-benchmarks"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django_q"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": PARTS["dbname"],
        "USER": PARTS["user"],
        "PASSWORD": PARTS["password"],
        "HOST": PARTS["host"],
        "PORT": PARTS["port"],
        "CONN_MAX_AGE": 600,
    }
}
Q_CLUSTER = {
    "name": "stock",
    "workers": int(os.environ.get("BENCH_WORKERS", "2")),
    "orm": "default",
    "bulk": 50,
    "queue_limit": 500,
    "timeout": 60,
    "retry": 120,
    "save_limit": 0,
    "poll": 0.05,
}
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGGING = {"version": 1, "disable_existing_loggers": False, "root": {"level": "ERROR"}}
