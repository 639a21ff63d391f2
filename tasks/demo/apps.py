"""The demo as an app of its own: where nobody runs it, one empty table is all there is of it."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_save
from django.utils.translation import gettext_lazy as _


class DemoConfig(AppConfig):
    """The simulated provider, sample kinds and tickets, and the trickle."""

    name = "tasks.demo"
    label = "redrive_demo"
    verbose_name = _("Redrive demo")

    def ready(self) -> None:
        """Follow changes of kinds and providers, in their transaction, in whichever process a person makes them.

        No task of the trickle may reach a provider that costs money.
        """
        from tasks.models import Kind, Provider

        for model in (Kind, Provider):
            post_save.connect(_withdraw_paid, sender=model, dispatch_uid=f"{self.label}.{model.__name__}")


def _withdraw_paid(**_signal: object) -> None:
    from tasks.demo.trickle import withdraw_paid

    withdraw_paid()
