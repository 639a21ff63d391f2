"""All settings, read from the environment by typed readers. Imports with an empty environment and opens no database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from config import database, env

BASE_DIR = Path(__file__).resolve().parent.parent

# --- Redrive -------------------------------------------------------------------------------------------------------
REDRIVE_DATA_DIR = Path(env.text("REDRIVE_DATA_DIR", str(BASE_DIR / ".redrive"))).absolute()
REDRIVE_WORKERS = env.integer("REDRIVE_WORKERS", os.cpu_count() or 1, minimum=1, maximum=512)
REDRIVE_SLOTS = env.integer("REDRIVE_SLOTS", 50, minimum=1, maximum=5_000)
REDRIVE_LEASE_SECONDS = env.seconds("REDRIVE_LEASE_SECONDS", 12, minimum=2, maximum=600)
REDRIVE_DRAIN_SECONDS = env.seconds("REDRIVE_DRAIN_SECONDS", 20, maximum=3_600)
REDRIVE_WATCHDOG_SECONDS = env.seconds("REDRIVE_WATCHDOG_SECONDS", 10, minimum=1, maximum=3_600)
REDRIVE_PGBOUNCER = env.flag("REDRIVE_PGBOUNCER")
REDRIVE_LISTENER = database.listener()
# Through PgBouncer in transaction mode nobody can listen, so without a way around it there is nobody to notify.
REDRIVE_NOTIFY = env.flag("REDRIVE_NOTIFY", default=True) and bool(REDRIVE_LISTENER or not REDRIVE_PGBOUNCER)
REDRIVE_APPS = env.words("REDRIVE_APPS")
REDRIVE_OPERATOR_PASSWORD = env.text("REDRIVE_OPERATOR_PASSWORD")

# --- Django --------------------------------------------------------------------------------------------------------
# Empty is allowed so that the settings import anywhere; the web process and qcluster refuse to start without it.
SECRET_KEY = env.text("SECRET_KEY") or database.stored_secret_key(REDRIVE_DATA_DIR)
DEBUG = env.flag("DEBUG")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ("127.0.0.1", "localhost", "[::1]"))
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS if host not in {"*", "127.0.0.1", "[::1]"}]

INSTALLED_APPS = [
    "config.apps.RedriveAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "tasks",
    "tasks.demo",
    "deadletters",
    # After tasks, so that our qcluster command is the one found.
    "django_q",
    *REDRIVE_APPS,
]

MIDDLEWARE = [
    "config.middleware.ProbeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "config.middleware.UncachedMiddleware",
    "config.middleware.ProblemMiddleware",
    "config.middleware.ReadableMiddleware",
    "config.middleware.StaticMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "config.middleware.HtmxLoginMiddleware",
    "config.middleware.OperatorMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": database.from_environment(REDRIVE_DATA_DIR, pgbouncer=REDRIVE_PGBOUNCER)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

LANGUAGE_CODE = "en"
# Only what is translated is offered: half a page in another language is worse than none.
LANGUAGES = [("en", _("English"))]
LOCALE_PATHS = [BASE_DIR / "config" / "locale"]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = REDRIVE_DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# Nothing inline, nothing from elsewhere: the pages carry error texts written by strangers.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    },
}
SECURE_REFERRER_POLICY = "same-origin"
# Behind a proxy that ends TLS: its word for https is believed, and cookies travel over https only.
TRUST_PROXY = env.flag("TRUST_PROXY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUST_PROXY else None
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = TRUST_PROXY
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"

# The payload limit is 1 MiB; a form that carries one needs room for its encoding.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
# Beyond what any page lets a person tick, so that the page's own limit is what they are told.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5_000

# django-q2 supervises and schedules. Its worker, the only user of its timeout and retry, never runs here: the engine
# has a timeout per attempt and leases. The two numbers only keep its start-up warning quiet.
Q_CLUSTER = {
    "name": "redrive",
    "workers": REDRIVE_WORKERS,
    "timeout": 2_147_483_646,
    "retry": 2_147_483_647,
    "guard_cycle": 0.2,
    "broker_class": "tasks.engine.broker.TaskBroker",
    "catch_up": False,
    "daemonize_workers": True,
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"mask": {"()": "tasks.errors.logs.MaskSecrets"}},
    "formatters": {"line": {"format": "{asctime} {levelname} {name}[{process}] {message}", "style": "{"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["mask"]},
        "nowhere": {"class": "logging.NullHandler"},
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # The openai client and its transport log every request at INFO.
        "httpx2": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
        # What a visitor does wrong is answered with 403 or 404; it is no matter for the log, and anybody could fill it.
        "django.request": {"level": "ERROR"},
        "django.security": {"handlers": ["nowhere"], "propagate": False},
    },
}
