"""What the database itself refuses, and how the hot tables are stored."""

from django.db import migrations

FORWARD = """
ALTER TABLE tasks_task SET (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE tasks_attempt SET (fillfactor = 80);
ALTER TABLE tasks_workerprocess SET (fillfactor = 50);

CREATE FUNCTION redrive_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

-- A row that outlives what it points to loses the pointer (the trigger's argument), and nothing else with it.
CREATE FUNCTION redrive_refuse_change_but() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    pointer CONSTANT text := TG_ARGV[0];
    was CONSTANT jsonb := to_jsonb(OLD);
    becomes CONSTANT jsonb := to_jsonb(NEW);
BEGIN
    IF was ->> pointer IS NOT NULL AND becomes ->> pointer IS NULL AND was - pointer = becomes - pointer THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER task_event_append_only BEFORE UPDATE ON tasks_taskevent FOR EACH ROW
    EXECUTE FUNCTION redrive_refuse_change_but('attempt_id');
CREATE TRIGGER prompt_version_immutable BEFORE UPDATE ON tasks_promptversion FOR EACH ROW
    EXECUTE FUNCTION redrive_refuse_change();
CREATE TRIGGER operator_action_append_only BEFORE UPDATE ON tasks_operatoraction FOR EACH ROW
    EXECUTE FUNCTION redrive_refuse_change_but('user_id');
CREATE TRIGGER attempt_ended_once BEFORE UPDATE ON tasks_attempt FOR EACH ROW
    WHEN (OLD.outcome <> 'running') EXECUTE FUNCTION redrive_refuse_change();

CREATE FUNCTION redrive_refuse_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status = 'dead' AND NEW.status = 'ready' AND NEW.cycle = OLD.cycle + 1 THEN
        RETURN NEW;
    END IF;
    IF OLD.status = 'skipped' AND NEW.status = 'ready' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'task % cannot go from % to %', OLD.id, OLD.status, NEW.status
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER task_forward_only BEFORE UPDATE OF status ON tasks_task FOR EACH ROW
    WHEN (OLD.status IN ('succeeded', 'dead', 'cancelled', 'skipped') AND NEW.status <> OLD.status)
    EXECUTE FUNCTION redrive_refuse_move();
"""

BACKWARD = """
DROP TRIGGER task_forward_only ON tasks_task;
DROP TRIGGER attempt_ended_once ON tasks_attempt;
DROP TRIGGER operator_action_append_only ON tasks_operatoraction;
DROP TRIGGER prompt_version_immutable ON tasks_promptversion;
DROP TRIGGER task_event_append_only ON tasks_taskevent;
DROP FUNCTION redrive_refuse_move();
DROP FUNCTION redrive_refuse_change_but();
DROP FUNCTION redrive_refuse_change();
"""


class Migration(migrations.Migration):
    """Triggers and storage settings."""

    dependencies = [("tasks", "0001_initial")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
