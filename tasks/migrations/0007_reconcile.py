"""Ask handlers what became of work whose outcome is unknown."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks', '0006_hot_path'),
    ]

    operations = [
        migrations.AddField(
            model_name='task',
            name='ask_after',
            field=models.DateTimeField(help_text='Of an unknown task: when; while it is asked: the end of its window.', null=True, verbose_name='asked next'),
        ),
        migrations.AddField(
            model_name='task',
            name='asks',
            field=models.PositiveSmallIntegerField(db_default=0, default=0, help_text='How often its handler was asked what became of the work, since it is unknown.', verbose_name='times asked'),
        ),
        migrations.AddField(
            model_name='workerprocess',
            name='reconcilers',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), blank=True, db_default=[], default=list, help_text='The handlers among them that can tell what became of a vanished attempt.', size=None),
        ),
    ]
