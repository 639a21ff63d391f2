"""The three groups of people: who may view, who may operate, who may configure. Written after each migration."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed_apps
from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions
from django.db import DEFAULT_DB_ALIAS

#: Group -> codenames of its permissions; each group includes the one before.
GROUPS = {
    "view": ("view_console",),
    "operate": ("view_console", "operate"),
    "configure": ("view_console", "operate", "configure"),
}


def write_groups(
    sender: AppConfig, *, using: str = DEFAULT_DB_ALIAS, apps: Apps = installed_apps, **signal: Any
) -> None:
    """Make the groups and see that each has its permissions; what an operator added to them stays.

    A receiver of ``post_migrate``. The permissions are made by a receiver of Django's own, which may come after this
    one: it is called first, and does nothing the second time.
    """
    create_permissions(sender, verbosity=0, interactive=False, using=using, apps=apps)
    try:
        group_model, permission_model = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
        apps.get_model("tasks", "OperatorAction")
    except LookupError:  # migrated back to before the tables
        return
    permissions = permission_model._default_manager.using(using)
    for name, codenames in GROUPS.items():
        group, _ = group_model._default_manager.using(using).get_or_create(name=name)
        group.permissions.add(
            *permissions.filter(
                content_type__app_label="tasks", content_type__model="operatoraction", codename__in=codenames
            )
        )
