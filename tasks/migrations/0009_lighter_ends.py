"""What an attempt's end costs the database: two checks of foreign keys less, and counts that are summed once.

Backward it reads all attempts and events while nobody may write them: stop the workers first.
"""

import django.db.models.deletion
from django.db import migrations, models

FORWARD = """
-- In place of the foreign keys, each of which locked the task's row anew for each attempt and each event.
CREATE FUNCTION redrive_keep_history() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kept uuid;
BEGIN
    SELECT o.id INTO kept FROM old_rows o
    WHERE EXISTS (SELECT 1 FROM tasks_attempt a WHERE a.task_id = o.id)
       OR EXISTS (SELECT 1 FROM tasks_taskevent e WHERE e.task_id = o.id)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'task % still has attempts or events', kept USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER task_history_first AFTER DELETE ON tasks_task REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION redrive_keep_history();

CREATE OR REPLACE FUNCTION redrive_tally_ended_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH ended AS MATERIALIZED (
        SELECT kind_id, outcome, error_code, width_bucket(seconds, edges) AS bucket, count(*) AS number,
            sum(seconds) AS seconds, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
            sum(cost) AS cost
        FROM (
            SELECT t.kind_id, n.outcome, n.error_code, n.input_tokens, n.output_tokens, n.cost,
                greatest(0, date_part('epoch', n.finished_at - n.started_at)) AS seconds,
                ARRAY[0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600]::float8[] AS edges
            FROM new_rows n JOIN tasks_task t ON t.id = n.task_id WHERE n.outcome <> 'running'
        ) AS each_one
        GROUP BY kind_id, outcome, error_code, bucket
    )
    INSERT INTO tasks_tallydelta (metric, kind, label, value)
    SELECT 'attempts', kind_id, concat_ws(' ', outcome, nullif(error_code, '')), sum(number)
        FROM ended GROUP BY kind_id, outcome, error_code
    UNION ALL SELECT 'attempt_bucket', kind_id, bucket::text, sum(number) FROM ended GROUP BY kind_id, bucket
    UNION ALL SELECT name, kind_id, '', sum(value) FROM ended, LATERAL (VALUES
        ('attempt_seconds', seconds), ('input_tokens', input_tokens), ('output_tokens', output_tokens), ('cost', cost)
    ) AS sums(name, value) WHERE value <> 0 GROUP BY name, kind_id;
    RETURN NULL;
END $$;
"""

BACKWARD = """
DROP TRIGGER task_history_first ON tasks_task;
DROP FUNCTION redrive_keep_history();

CREATE OR REPLACE FUNCTION redrive_tally_ended_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH ended AS MATERIALIZED (
        SELECT t.kind_id, n.outcome, n.error_code, n.input_tokens, n.output_tokens, n.cost,
            greatest(0, extract(epoch FROM n.finished_at - n.started_at)) AS seconds
        FROM new_rows n JOIN tasks_task t ON t.id = n.task_id WHERE n.outcome <> 'running'
    )
    INSERT INTO tasks_tallydelta (metric, kind, label, value)
    SELECT 'attempts', kind_id, concat_ws(' ', outcome, nullif(error_code, '')), count(*)
        FROM ended GROUP BY kind_id, outcome, error_code
    UNION ALL SELECT 'attempt_bucket', kind_id,
        width_bucket(seconds, ARRAY[0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600]::numeric[])::text, count(*)
        FROM ended GROUP BY 1, 2, 3
    UNION ALL SELECT name, kind_id, '', sum(value) FROM ended, LATERAL (VALUES
        ('attempt_seconds', seconds), ('input_tokens', input_tokens), ('output_tokens', output_tokens), ('cost', cost)
    ) AS sums(name, value) WHERE value <> 0 GROUP BY name, kind_id;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    """Constraints that go, and triggers."""

    dependencies = [("tasks", "0008_log")]
    operations = [
        # In the order in which workers take them, or one of both would be ended as a deadlock.
        migrations.RunSQL(
            "LOCK TABLE tasks_task, tasks_attempt, tasks_taskevent IN ACCESS EXCLUSIVE MODE", migrations.RunSQL.noop
        ),
        migrations.AlterField(
            model_name="attempt",
            name="task",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="attempts",
                to="tasks.task",
            ),
        ),
        migrations.AlterField(
            model_name="taskevent",
            name="task",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="events",
                to="tasks.task",
            ),
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
