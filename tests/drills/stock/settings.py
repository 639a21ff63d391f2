"""As its documentation advises for work that must not be lost: a retry that is longer than the timeout."""

import os

from psycopg.conninfo import conninfo_to_dict

PARTS = conninfo_to_dict(os.environ["DRILL_DSN"])
SECRET_KEY = "only-for-drills"
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
    "workers": int(os.environ.get("DRILL_WORKERS", "4")),
    "orm": "default",
    "timeout": 20,
    "retry": 30,
    "ack_failures": False,
    "save_limit": 0,
    "poll": 0.2,
}
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGGING = {"version": 1, "disable_existing_loggers": False, "root": {"level": "ERROR"}}
