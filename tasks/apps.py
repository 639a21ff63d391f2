"""The engine and its console."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class TasksConfig(AppConfig):
    """Tasks, attempts, kinds, providers, workers."""

    name = "tasks"
    verbose_name = _("Redrive")

    def ready(self) -> None:
        """Register the checks and what follows a migration, and import each app's ``handlers`` module."""
        from tasks import catalogue_rows, checks, discovery, groups

        checks.register_checks()
        post_migrate.connect(catalogue_rows.write_catalogue, sender=self, dispatch_uid="tasks.catalogue_rows")
        post_migrate.connect(groups.write_groups, sender=self, dispatch_uid="tasks.groups")
        discovery.discover_handlers()
