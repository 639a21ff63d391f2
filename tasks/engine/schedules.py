"""django-q2's schedules, fired one by one, each in a transaction of its own.

Its own scheduler fires all that are due in one transaction: the first that it cannot read (arguments that are no
literals, a cron expression without a next time, a call that is too large) keeps every other from firing, and is only
logged. Here such a schedule becomes a task that dies with the reason, and the others go on.
"""

from __future__ import annotations

import ast
import logging
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django_q.models import Schedule
from django_q.tasks import async_task

from tasks.engine.broker import DJANGO_Q_CALL, LONGEST_TAG, TaskBroker, ensure_kind
from tasks.engine.trouble import Trouble, trouble
from tasks.errors.text import as_text
from tasks.lifecycle import submit

logger = logging.getLogger(__name__)
#: Schedules fired in one look; the rest follows at the next.
BATCH = 1_000
#: The task has nothing that could run, so that its letter is not for Reprocess.
CLOSE = "Reprocess cannot help: mend the schedule, or make it anew, and discard this letter."
#: Characters of unreadable arguments in the sentence about them, and kept with the task.
SHOWN, KEPT = 200, 10_000
#: Of these types a next time is found without a step for each one missed.
STEPS: dict[Any, timedelta | None] = {Schedule.MINUTES: None, Schedule.HOURLY: timedelta(hours=1)}
#: Of the others, so many missed ones are walked through: a century of days.
MOST_STEPS = 36_525
UNREADABLE = (SyntaxError, ValueError, TypeError, MemoryError, RecursionError)


class Unreadable(ValueError):
    """A schedule that cannot be fired as it is, with a sentence that says why."""


def fire_due(broker: Any = None) -> int:
    """Fire the schedules that are due; how many. Raises nothing: what cannot be done now is due still.

    Whatever their cluster: all clusters on this database run one queue. Several may call this at the same time.
    """
    try:
        due = list(_due().order_by("next_run").values_list("pk", flat=True)[:BATCH])
    except DatabaseError:
        logger.exception("The schedules could not be looked at; they are due still.")
        return 0
    return sum(_tried(pk, broker or TaskBroker()) for pk in due)


def _due() -> QuerySet[Any]:
    """Each with ``now``, by the database's clock."""
    due: QuerySet[Any] = Schedule.objects.exclude(repeats=0).filter(next_run__lt=Now()).annotate(now=Now())
    return due


def _tried(pk: int, broker: TaskBroker) -> bool:
    try:
        return _fired(pk, broker)
    except Exception as error:
        logger.exception("The schedule %s could not be fired; it is due still.", pk)
        if trouble(error) in (Trouble.VALUE, Trouble.OTHER):
            _tell_people(pk, error)
        return False


def _tell_people(pk: int, error: Exception) -> None:
    """A letter about one that is tried again and again, for a reason that will not pass: one for each time it is due.

    The schedule is left as it is, which may be what cannot be stored.
    """
    problem = f"It is tried again until it can be. {_named(error)}"
    try:
        _in_turn(pk, lambda schedule: _submit_problem(schedule, problem, uuid.uuid4().hex, _broken_state(schedule)))
    except Exception:
        logger.exception("Nor could a dead letter be made about the schedule %s.", pk)


def _fired(pk: int, broker: TaskBroker) -> bool:
    """Fire one, or record why not. Raises DatabaseError where that is the database's fault."""
    try:
        return _in_turn(pk, lambda schedule: _fire(schedule, broker))
    except DatabaseError:
        raise
    except Exception as error:
        logger.error("The schedule %s cannot be fired: %s", pk, as_text(error))
        problem = str(error) if isinstance(error, Unreadable) else _named(error)
        return _in_turn(pk, lambda schedule: _give_up(schedule, problem))


def _in_turn(pk: int, do: Any) -> bool:
    """``do`` it with the schedule, whose row is locked; False where somebody else was first."""
    with transaction.atomic():
        schedule = _due().select_for_update(skip_locked=True).filter(pk=pk).first()
        if schedule is None:
            return False
        do(schedule)
        return True


def _fire(schedule: Any, broker: TaskBroker) -> None:
    args, kwargs = positional(schedule), named(schedule)
    options = kwargs.pop("q_options", None) or {}
    if not isinstance(options, dict):
        raise Unreadable("Its keyword argument q_options is no dictionary.")
    # In the scheduler there is no caller to run it for; and its broker is this one.
    for name in ("sync", "broker"):
        options.pop(name, None)
        kwargs.pop(name, None)
    if schedule.intended_date_kwarg:
        kwargs[schedule.intended_date_kwarg] = schedule.next_run.isoformat()
    if schedule.hook:
        options["hook"] = schedule.hook
    cluster = schedule.cluster or options.get("cluster") or options.pop("broker_name", None)
    group = options.get("group", schedule.name or schedule.pk)
    options |= {"broker": broker, "cluster": cluster, "group": group}
    _move_on(schedule)
    schedule.task = async_task(schedule.func, *args, q_options=options, **kwargs)
    _store(schedule)
    logger.info("The schedule %s is fired as call %s.", schedule.name or schedule.pk, schedule.task)


def positional(schedule: Any) -> tuple[Any, ...]:
    """A schedule's arguments, as django-q2 writes them. Raises Unreadable."""
    try:
        args = ast.literal_eval(schedule.args) if schedule.args else ()
    except UNREADABLE as error:
        raise Unreadable(
            f"Its arguments cannot be read: {_shown(schedule.args)}. Write literals with commas: 1, 'two', [3]"
        ) from error
    return args if isinstance(args, tuple) else (args,)


def named(schedule: Any) -> dict[str, Any]:
    """Its keyword arguments, from a dictionary or as in a call: ``{'x': 1}``, ``x=1``. Raises Unreadable."""
    text = schedule.kwargs
    if not text:
        return {}
    for read in (ast.literal_eval, _as_in_a_call):
        try:
            found = read(text)
        except UNREADABLE:
            continue
        if isinstance(found, dict) and all(isinstance(name, str) for name in found):
            return found
    raise Unreadable(
        f"Its keyword arguments cannot be read: {_shown(text)}. Write literals with commas: x=1, name='John'"
    )


def _as_in_a_call(text: str) -> dict[str, Any] | None:
    called = ast.parse(f"f({text})", mode="eval").body
    if not isinstance(called, ast.Call) or called.args:
        return None
    return {str(each.arg): ast.literal_eval(each.value) for each in called.keywords}


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


def next_time(schedule: Any, now: datetime) -> datetime:
    """When a schedule that is not for once is due after ``now``. Raises Unreadable."""
    due = schedule.next_run
    try:
        if schedule.schedule_type in STEPS:
            step = STEPS[schedule.schedule_type] or timedelta(minutes=schedule.minutes or 1)
            found: datetime = due + max((now - due) // step + 1, 1) * step
            return found
        for _ in range(MOST_STEPS):
            due = schedule.calculate_next_run(due)
            if due > now:
                return due  # type: ignore[no-any-return]
    except Exception as error:  # croniter has errors of its own
        raise Unreadable(f"Its next time cannot be told: {as_text(error)}.") from error
    raise Unreadable(f"Its next run, {schedule.next_run:%Y-%m-%d}, lies too far back.")


def _move_on(schedule: Any) -> None:
    if schedule.schedule_type == Schedule.ONCE:
        schedule.repeats = -1 if schedule.repeats < 0 else 0
        return
    schedule.next_run = next_time(schedule, schedule.now)
    schedule.repeats = max(schedule.repeats, -1)
    if schedule.repeats > 0:
        schedule.repeats -= 1


def _store(schedule: Any) -> None:
    if schedule.schedule_type == Schedule.ONCE and schedule.repeats < 0:
        schedule.delete()
    else:
        schedule.save(update_fields=["next_run", "repeats", "task"])


def _give_up(schedule: Any, problem: str) -> None:
    """A task in the place of the call, which dies with the reason; the schedule moves on, or stops."""
    try:
        _move_on(schedule)
    except Unreadable:
        schedule.next_run = None
        problem += " The schedule is stopped: give it a next run once that is mended."
    schedule.task = uuid.uuid4().hex
    _submit_problem(schedule, problem, schedule.task)
    _store(schedule)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {as_text(error)}"


def _broken_state(schedule: Any) -> str:
    """The same until the schedule has moved on."""
    return f"schedule {schedule.pk} due {schedule.next_run.isoformat()}"


def _submit_problem(schedule: Any, problem: str, call_id: str, key: str = "") -> None:
    """The task that dies with ``problem``; with a ``key``, of one key only once."""
    name = str(schedule.name or schedule.pk)
    payload = {
        "func": schedule.func,
        "name": name,
        "group": name,
        "cluster": schedule.cluster or "",
        "schedule": schedule.pk,
        "args": (schedule.args or "")[:KEPT],
        "kwargs": (schedule.kwargs or "")[:KEPT],
        "problem": f"The schedule “{name}” cannot be fired. {problem.rstrip('.')}. {CLOSE}",
    }
    ensure_kind()
    tags = [name] if len(name) <= LONGEST_TAG else []
    submit(DJANGO_Q_CALL, payload, trace_id=call_id, tags=tags, idempotency_key=key)
