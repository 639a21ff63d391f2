"""What the projects with stock django-q2 have in common, which drills and benchmarks compare ours with."""

from __future__ import annotations

from typing import Any

from psycopg.conninfo import conninfo_to_dict

INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django_q"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGGING = {"version": 1, "disable_existing_loggers": False, "root": {"level": "ERROR"}}
#: Its own broker, and every task kept.
CLUSTER = {"name": "stock", "orm": "default", "save_limit": 0}


def databases(dsn: str) -> dict[str, dict[str, Any]]:
    """Django's setting; with a connection that is kept: by default it opens one for each task."""
    parts = conninfo_to_dict(dsn)
    return {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts["dbname"],
            "USER": parts["user"],
            "PASSWORD": parts["password"],
            "HOST": parts["host"],
            "PORT": parts["port"],
            "CONN_MAX_AGE": 600,
        }
    }
