"""The places that handlers take at limited providers which they name themselves."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """One table."""

    dependencies = [("tasks", "0009_lighter_ends")]
    operations = [
        migrations.CreateModel(
            name="LimitPlace",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("attempt_id", models.BigIntegerField()),
                ("provider", models.CharField(max_length=100)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("attempt_id", "provider"), name="limit_place_once"),
                ],
            },
        ),
    ]
