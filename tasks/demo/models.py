"""What the demo keeps in the database."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from tasks.models import Task


class TrickledTask(models.Model):
    """A task that the trickle submitted and that had not ended when it last looked; never more than a few hundred.

    It is how the demo knows its own tasks: tags and kinds are anybody's to use. Without a foreign key in the database,
    so that tasks can be deleted as if there were no demo.
    """

    task = models.OneToOneField(Task, on_delete=models.CASCADE, primary_key=True, related_name="+", db_constraint=False)

    class Meta:
        default_permissions = ()
        verbose_name = _("task of the trickle")
        verbose_name_plural = _("tasks of the trickle")

    def __str__(self) -> str:
        return f"demo task {self.pk}"
