"""What the database itself refuses: a changed row of a letter's history."""

from django.db import migrations


class Migration(migrations.Migration):
    """One trigger; its function comes with the engine's guards."""

    dependencies = [("deadletters", "0001_initial"), ("tasks", "0002_guards")]
    operations = [
        migrations.RunSQL(
            "CREATE TRIGGER letter_event_append_only BEFORE UPDATE ON deadletters_letterevent FOR EACH ROW "
            "EXECUTE FUNCTION redrive_refuse_change()",
            "DROP TRIGGER letter_event_append_only ON deadletters_letterevent",
        ),
    ]
