"""System checks: configuration that would start well and fail at night."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from tasks import discovery
from tasks.engine import registry
from tasks.lifecycle import registered_recorders

#: The oldest PostgreSQL whose behaviour the engine is tested on.
MINIMUM_POSTGRESQL = 15
#: What a direct connection sets for itself.
SESSION_LIMITS = {"statement_timeout": "30s", "lock_timeout": "20s", "idle_in_transaction_session_timeout": "60s"}


def check_recorder(app_configs: Any = None, **options: Any) -> list[CheckMessage]:
    """Exactly one recorder writes dead letters: with none a death has no record, with two it has two."""
    found = registered_recorders()
    if len(found) == 1:
        return []
    names = ", ".join(f"{type(one).__module__}.{type(one).__qualname__}" for one in found) or "none"
    return [
        Error(
            f"{len(found)} recorders of dead letters are registered ({names}); exactly one is needed.",
            hint="Keep 'deadletters' in INSTALLED_APPS, and call tasks.lifecycle.register_recorder nowhere else.",
            id="tasks.E001",
        )
    ]


def check_secret_key(app_configs: Any = None, **options: Any) -> list[CheckMessage]:
    """A deployment has a SECRET_KEY (asked with ``check --deploy``)."""
    with suppress(ImproperlyConfigured):  # what Django raises for an empty one
        if settings.SECRET_KEY:
            return []
    return [
        Error(
            "SECRET_KEY is not set: the web process and qcluster refuse to start.",
            hint="Set SECRET_KEY, or SECRET_KEY_FILE to the path of a file that holds it: the same in every part.",
            id="tasks.E002",
        )
    ]


def check_times(app_configs: Any = None, **options: Any) -> list[CheckMessage]:
    """Lease, watchdog and drain fit together."""
    found: list[CheckMessage] = []
    lease, watchdog, drain = (getattr(settings, f"REDRIVE_{name}_SECONDS") for name in ("LEASE", "WATCHDOG", "DRAIN"))
    if watchdog >= lease:
        found.append(
            Warning(
                f"REDRIVE_WATCHDOG_SECONDS ({watchdog:g}) is not below REDRIVE_LEASE_SECONDS ({lease:g}): a frozen"
                " worker loses its tasks to others before it is restarted.",
                hint="Set the watchdog a few seconds below the lease (10 and 12 by default).",
                id="tasks.W001",
            )
        )
    if drain == 0:
        found.append(
            Warning(
                "REDRIVE_DRAIN_SECONDS is 0: every restart cuts the model calls under way, which are paid for again.",
                hint="Set it to about the length of a usual call, and the service manager's stop time 5 s above it.",
                id="tasks.W002",
            )
        )
    return found


def check_apps(app_configs: Any = None, **options: Any) -> list[CheckMessage]:
    """Each app of REDRIVE_APPS has a module ``handlers``, or one of calls of django-q2, which it was added for."""
    by_entry = {name: config for config in apps.get_app_configs() for name in (config.name, _dotted(config))}
    return [
        Warning(
            f"REDRIVE_APPS names {entry!r}, which has no module {by_entry[entry].name}.handlers.",
            hint="Register handlers with @tasks.handler in handlers.py of the app, or take it out of REDRIVE_APPS.",
            id="tasks.W003",
        )
        for entry in settings.REDRIVE_APPS
        if entry in by_entry and not any(find_spec(f"{by_entry[entry].name}.{one}") for one in ("handlers", "tasks"))
    ]


def check_reconcilers(app_configs: Any = None, **options: Any) -> list[CheckMessage]:
    """What is asked about a handler's vanished work is registered under the name of a handler."""
    return [
        Warning(
            f"A reconcile function is registered for {name!r}, which no handler is named: it is never asked.",
            hint="Give @tasks.reconcile the name that @tasks.handler has.",
            id="tasks.W007",
        )
        for name in sorted(set(registry.reconcilers()) - set(registry.names()))
    ]


def check_handlers(app_configs: Any = None, **options: Any) -> list[CheckMessage]:
    """The handlers of every app can be imported: a worker without them would leave their tasks waiting in silence."""
    return [
        Error(
            f"The handlers of the app {one.app!r} cannot be imported: {one.why}.",
            hint="Correct its handlers.py, or take the app out of REDRIVE_APPS. The log has the traceback.",
            id="tasks.E004",
        )
        for one in discovery.failed
    ]


def check_database(
    app_configs: Any = None, databases: Sequence[str] | None = None, **options: Any
) -> list[CheckMessage]:
    """What needs the database (asked with ``--database``).

    The server is new enough; this process knows the handlers of its kinds and has the keys of their providers; some
    worker runs the kinds whose tasks wait.
    """
    if "default" not in (databases or ()):
        return []
    if found := _check_version():
        return found
    found = _check_session_limits()
    # migrate runs these checks too, before there are tables
    if _has_tables():
        found += [*_check_kinds(), *_check_keys(), *_check_workers()]
    return found


def _dotted(config: Any) -> str:
    return f"{type(config).__module__}.{type(config).__qualname__}"


def _check_version() -> list[CheckMessage]:
    connection: Any = connections["default"]
    connection.ensure_connection()
    major = connection.pg_version // 10_000
    if major >= MINIMUM_POSTGRESQL:
        return []
    return [
        Error(
            f"The database is PostgreSQL {major}; {MINIMUM_POSTGRESQL} or newer is needed.",
            hint="Point DATABASE_URL to a newer server, or leave it out to use the embedded one.",
            id="tasks.E003",
        )
    ]


def _check_session_limits() -> list[CheckMessage]:
    """Through PgBouncer no session brings its limits along."""
    if not settings.REDRIVE_PGBOUNCER:
        return []
    with connections["default"].cursor() as cursor:
        missing = [name for name in SESSION_LIMITS if _shown(cursor, name) == "0"]
    return [
        Warning(
            f"REDRIVE_PGBOUNCER is on, and the role of DATABASE_URL has no {name}.",
            hint=f"ALTER ROLE … SET {name} = '{SESSION_LIMITS[name]}'; then RECONNECT on PgBouncer's console.",
            id="tasks.W008",
        )
        for name in missing
    ]


def _shown(cursor: Any, name: str) -> str:
    cursor.execute("SELECT current_setting(%s)", [name])
    return str(cursor.fetchone()[0])


def _has_tables() -> bool:
    from tasks.models import Limit

    return Limit._meta.db_table in connections["default"].introspection.table_names()


def _check_kinds() -> list[CheckMessage]:
    from tasks.models import Kind

    known = set(registry.names())
    return [
        Warning(
            f"The kind {name!r} is run by the handler {handler!r}, which no installed app registers.",
            hint="Add the app that has it to REDRIVE_APPS, or correct the kind's handler.",
            id="tasks.W004",
        )
        for name, handler in Kind.objects.exclude(handler="").values_list("name", "handler")
        if handler not in known
    ]


def _check_keys() -> list[CheckMessage]:
    from tasks.errors import ConfigurationFault
    from tasks.llm.provider import api_key
    from tasks.llm.request import ProviderConfig
    from tasks.models import Provider

    found: list[CheckMessage] = []
    for provider in Provider.objects.filter(kinds__isnull=False).distinct().order_by("name"):
        try:
            api_key(ProviderConfig(provider.name, provider.base_url, provider.api_key_env))
        except ConfigurationFault as error:
            found.append(
                Warning(
                    f"Kinds use a provider without a key: {error}.",
                    hint="Give the variable, or NAME_FILE with the path of a file, to every process that runs workers.",
                    id="tasks.W005",
                )
            )
    return found


def _check_workers() -> list[CheckMessage]:
    from django.db.models import Exists, OuterRef

    from tasks.models import Kind, Task
    from tasks.states import Status
    from tasks.submission.follow import someone_runs

    waiting = Task.objects.filter(lane__kind=OuterRef("pk"), status=Status.READY, parked_at__isnull=True)
    kinds = Kind.objects.filter(Exists(waiting), paused_at__isnull=True).values_list("name", flat=True)
    return [
        Warning(
            f"Tasks of the kind {name!r} wait, and no live worker process runs it.",
            hint="Start 'manage.py qcluster' with the REDRIVE_APPS that have its handler, or look at /workers/.",
            id="tasks.W006",
        )
        for name in kinds
        if not someone_runs(name)
    ]


def register_checks() -> None:
    """Tell Django of the checks."""
    register(check_recorder, "tasks")
    register(check_secret_key, Tags.security, deploy=True)
    register(check_times, "tasks")
    register(check_apps, "tasks")
    register(check_reconcilers, "tasks")
    register(check_handlers, "tasks")
    register(check_database, Tags.database)
