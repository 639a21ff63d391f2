"""The triggers that keep the counts, and the counts of what is there already."""

from django.db import migrations

# Statement triggers over transition tables: a batch of any size appends a few rows, and no count is a row that
# transactions queue for. An update that moves nothing (progress, a beat) appends nothing.
FORWARD = """
ALTER TABLE tasks_tallydelta SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE FUNCTION redrive_tally_new_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tasks_tallydelta (metric, kind, label, value)
    SELECT 'tasks', kind_id, status, count(*) FROM new_rows GROUP BY kind_id, status
    UNION ALL SELECT 'submitted', kind_id, '', count(*) FROM new_rows GROUP BY kind_id;
    RETURN NULL;
END $$;

CREATE FUNCTION redrive_tally_gone_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tasks_tallydelta (metric, kind, label, value)
    SELECT 'tasks', kind_id, status, -count(*) FROM old_rows GROUP BY kind_id, status;
    RETURN NULL;
END $$;

CREATE FUNCTION redrive_tally_moved_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH change AS (
        SELECT kind_id, status, error_code, sum(part) AS amount FROM (
            SELECT kind_id, status, error_code, -1 AS part FROM old_rows
            UNION ALL SELECT kind_id, status, error_code, 1 FROM new_rows
        ) AS parts GROUP BY kind_id, status, error_code HAVING sum(part) <> 0
    )
    INSERT INTO tasks_tallydelta (metric, kind, label, value)
    SELECT 'tasks', kind_id, status, sum(amount) FROM change GROUP BY kind_id, status HAVING sum(amount) <> 0
    UNION ALL SELECT 'ended', kind_id, concat_ws(' ', status, nullif(error_code, '')), amount FROM change
    WHERE amount > 0 AND status IN ('succeeded', 'dead', 'cancelled', 'skipped');
    RETURN NULL;
END $$;

CREATE FUNCTION redrive_tally_ended_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER task_tally_new AFTER INSERT ON tasks_task REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION redrive_tally_new_tasks();
CREATE TRIGGER task_tally_moved AFTER UPDATE ON tasks_task REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION redrive_tally_moved_tasks();
CREATE TRIGGER task_tally_gone AFTER DELETE ON tasks_task REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION redrive_tally_gone_tasks();
CREATE TRIGGER attempt_tally_ended AFTER UPDATE ON tasks_attempt REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION redrive_tally_ended_attempts();

-- Whoever moves a task meanwhile waits for the triggers; none is counted twice or not at all.
LOCK TABLE tasks_task IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO tasks_tally (metric, kind, label, value)
SELECT 'tasks', kind_id, status, count(*) FROM tasks_task GROUP BY kind_id, status;
"""

BACKWARD = """
DROP TRIGGER attempt_tally_ended ON tasks_attempt;
DROP TRIGGER task_tally_gone ON tasks_task;
DROP TRIGGER task_tally_moved ON tasks_task;
DROP TRIGGER task_tally_new ON tasks_task;
DROP FUNCTION redrive_tally_ended_attempts();
DROP FUNCTION redrive_tally_moved_tasks();
DROP FUNCTION redrive_tally_gone_tasks();
DROP FUNCTION redrive_tally_new_tasks();
DELETE FROM tasks_tallydelta;
DELETE FROM tasks_tally;
"""


class Migration(migrations.Migration):
    """Triggers, and a first count."""

    dependencies = [("tasks", "0003_keys_and_tallies")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
