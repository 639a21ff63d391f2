"""Who waits for a place at a provider that its handler named, and whose turn it is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """A column each of two small tables."""

    dependencies = [("tasks", "0011_attempts_in_place")]
    operations = [
        migrations.AddField("limitplace", "waits_until", models.DateTimeField(null=True)),
        migrations.AddField("limit", "last_claimed", models.BooleanField(default=False, db_default=False)),
    ]
