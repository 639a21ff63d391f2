"""An attempt's end is written beside its beginning, with no index to follow: a third of what an end costs."""

from django.db import migrations, models

# Room on each page for the second version of each row, which is the last: an update that changes no indexed column and
# finds room on its page leaves all indexes alone.
ROOM = "ALTER TABLE tasks_attempt SET (fillfactor = 45)"
LESS_ROOM = "ALTER TABLE tasks_attempt SET (fillfactor = 80)"

ONE_RUNNING = models.UniqueConstraint(
    fields=("task",), condition=models.Q(outcome="running"), name="attempt_one_running_per_task"
)
ONE_SUCCESS = models.UniqueConstraint(
    fields=("task",), condition=models.Q(outcome="succeeded"), name="attempt_one_success_per_task"
)
SUCCESS_ONCE = models.UniqueConstraint(
    fields=("task",), condition=models.Q(to_status="succeeded"), name="task_success_once"
)


def drop(name: str) -> str:
    """Beside the work; where there is none, nothing."""
    return f"DROP INDEX CONCURRENTLY IF EXISTS {name}"


def build(name: str, table: str, condition: str) -> list[str]:
    """The unique index of such a constraint, beside the work; what a run that was cut off left of it goes first."""
    return [drop(name), f"CREATE UNIQUE INDEX CONCURRENTLY {name} ON {table} (task_id) WHERE {condition}"]


RUNNING = ("attempt_one_running_per_task", "tasks_attempt", "outcome = 'running'")
SUCCEEDED = ("attempt_one_success_per_task", "tasks_attempt", "outcome = 'succeeded'")
SUCCESS = ("task_success_once", "tasks_taskevent", "to_status = 'succeeded'")


class Migration(migrations.Migration):
    """The promise of one success is kept by the events, which are never updated."""

    # Each step by itself, and indexes beside the work.
    atomic = False

    dependencies = [("tasks", "0010_limit_places")]
    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(build(*SUCCESS), drop(SUCCESS[0]))],
            [migrations.AddConstraint("taskevent", SUCCESS_ONCE)],
        ),
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(drop(RUNNING[0]), build(*RUNNING))],
            [migrations.RemoveConstraint("attempt", ONE_RUNNING.name)],
        ),
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(drop(SUCCEEDED[0]), build(*SUCCEEDED))],
            [migrations.RemoveConstraint("attempt", ONE_SUCCESS.name)],
        ),
        migrations.RunSQL(ROOM, LESS_ROOM),
    ]
