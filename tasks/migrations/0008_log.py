"""What handlers write down with ctx.log."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tasks", "0007_reconcile")]

    operations = [
        migrations.CreateModel(
            name="AttemptLog",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("seq", models.PositiveSmallIntegerField(verbose_name="number")),
                ("at", models.DateTimeField(verbose_name="when")),
                ("text", models.TextField(verbose_name="line")),
                (
                    "attempt",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="log",
                        to="tasks.attempt",
                    ),
                ),
            ],
            options={
                "verbose_name": "log line",
                "verbose_name_plural": "log lines",
                "ordering": ("attempt", "seq"),
                "constraints": [
                    models.UniqueConstraint(fields=("attempt", "seq"), name="attempt_log_seq_once")
                ],
            },
        ),
    ]
