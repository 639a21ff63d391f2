"""Where a task begins: in the caller's transaction, so that it commits or rolls back with the caller's own rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from tasks.lifecycle.announce import announce_ready
from tasks.lifecycle.clean import Unstorable, checked_payload, clean_text
from tasks.models import Kind, Task
from tasks.models.ranges import HIGHEST_PRIORITY, LOWEST_PRIORITY
from tasks.payload_schemas import Misfit, misfit
from tasks.states import Status

BATCH = 500
BATCH_CHARACTERS = 32 * 1024 * 1024
MAX_TAGS = 50
#: How far from now a task may start or expire; what lies beyond is a slip, such as milliseconds taken for seconds.
MAX_YEARS = 10
MAX_AWAY = timedelta(days=365.25 * MAX_YEARS)

#: Tasks, each with its payload as JSON.
Batch = list[tuple[Task, str]]

#: Columns that the tasks of one call have alike.
ALIKE = [
    "priority",
    "expires_at",
    "session_id",
    "user_id",
    "trace_id",
    "tags",
    "webhook_url",
    "idempotency_key",
]

# The rest of the columns is as a task begins. Without a lane for the kind and its provider nothing is inserted.
INSERT = """
WITH chosen AS MATERIALIZED (
    SELECT id, now() AS now,
        CASE WHEN %(start)s::timestamptz > now() THEN 'scheduled' ELSE 'ready' END AS status,
        greatest(%(start)s::timestamptz, now()) AS run_after
    FROM tasks_lane WHERE kind_id = %(kind)s AND provider_id IS NOT DISTINCT FROM %(provider)s
), made AS (
    INSERT INTO tasks_task (id, kind_id, lane_id, payload, status, subject, priority, run_after, expires_at,
        session_id, user_id, trace_id, tags, idempotency_key, webhook_url, created_at, status_at,
        reason, error_code, cycle, failures, snoozes, rescues, asks, event_seq, input_tokens, output_tokens, cost)
    SELECT g.id, %(kind)s, chosen.id, g.payload::jsonb, chosen.status, g.subject, %(priority)s, run_after,
        %(expires_at)s::timestamptz, %(session_id)s, %(user_id)s, %(trace_id)s, %(tags)s::text[], %(idempotency_key)s,
        %(webhook_url)s, now, now, '', '', 1, 0, 0, 0, 0, 1, 0, 0, 0
    FROM chosen CROSS JOIN unnest(%(ids)s::uuid[], %(payloads)s::text[], %(subjects)s::text[])
        AS g(id, payload, subject)
    RETURNING id, status
), noted AS (
    INSERT INTO tasks_taskevent (task_id, seq, at, type, from_status, to_status, cycle, actor, data)
    SELECT id, 1, now(), 'submitted', '', status, 1, '', '{}' FROM made
)
SELECT id, now, status, run_after FROM chosen
"""


class SubmitError(ValueError):
    """A task that was not taken, with a sentence that says why.

    ``payloads``: where it is payloads that cannot be taken, why for each, by its position among those given.
    """

    def __init__(self, message: str, payloads: Mapping[int, Misfit] | None = None) -> None:
        super().__init__(message)
        self.payloads = dict(payloads or {})


def submit(kind: str, payload: Any, **options: Any) -> Task:
    """Submit one task of ``kind``; see ``submit_many`` for the options. Raises SubmitError."""
    return submit_many(kind, [payload], **options)[0]


def submit_many(
    kind: str,
    payloads: Iterable[Any],
    *,
    priority: int | None = None,
    run_after: datetime | None = None,
    expires_at: datetime | None = None,
    session_id: str = "",
    user_id: str = "",
    trace_id: str = "",
    tags: Sequence[str] = (),
    webhook_url: str = "",
    idempotency_key: str = "",
) -> list[Task]:
    """Submit one task per payload, all or none, in the caller's transaction.

    ``payloads``: JSON values of at most 1 MiB each, which fit the ``payload_schema`` of the kind's handler where this
    process knows it. ``priority``: -100..100, the kind's own where None. ``run_after``:
    not before this time. ``expires_at``, after ``run_after``: a task not started by then dies as ``expired``. Both have
    a time zone and lie within 10 years of now. ``idempotency_key``: for one payload; a second submit with the same kind
    and key returns the first task.

    Raises SubmitError with a sentence when the kind is unknown or a value cannot be taken.
    """
    known = Kind.objects.filter(pk=clean_text(kind)).first()
    if known is None:
        message = _("There is no kind “%(kind)s”. Configure it with loadconfig or in the admin.")
        raise SubmitError(message % {"kind": kind})
    start, end = _moment("run_after", run_after), _moment("expires_at", expires_at)
    _check_order(start, end)
    fields = {
        "kind": known,
        "priority": _priority(known.priority if priority is None else priority),
        "expires_at": end,
        "session_id": _short("session_id", session_id),
        "user_id": _short("user_id", user_id),
        "trace_id": _short("trace_id", trace_id),
        "tags": _tags(tags),
        "webhook_url": _url(webhook_url),
        "idempotency_key": _short("idempotency_key", idempotency_key),
    }
    values = _checked(known, payloads)
    tasks = [Task(payload=value, subject=subject(known, value), **fields) for value in values]
    if idempotency_key and len(tasks) != 1:
        raise SubmitError(
            _("An idempotency key names one task; %(count)d payloads were given.") % {"count": len(tasks)}
        )
    return _insert(known, tasks, start) if tasks else []


def _insert(kind: Kind, tasks: list[Task], start: datetime | None) -> list[Task]:
    # By itself one statement is a transaction. Within the caller's it has a savepoint: an error takes back no more.
    is_alone = len(tasks) == 1 and not tasks[0].idempotency_key and connection.get_autocommit()
    with nullcontext() if is_alone else transaction.atomic():
        for batch in _batches(tasks):
            if tasks[0].idempotency_key:
                if earlier := _insert_or_earlier(kind, batch, start):
                    return [earlier]
            else:
                _insert_batch(kind, batch, start)
        if any(task.status == Status.READY for task in tasks):
            announce_ready()
    return tasks


def _batches(tasks: Sequence[Task]) -> Iterator[Batch]:
    """Each of at most ``BATCH`` tasks and about ``BATCH_CHARACTERS`` of payload: a statement has a limit."""
    batch: Batch = []
    room = BATCH_CHARACTERS
    for task in tasks:
        text = json.dumps(task.payload, ensure_ascii=False)
        if batch and (len(batch) == BATCH or room < len(text)):
            yield batch
            batch, room = [], BATCH_CHARACTERS
        batch.append((task, text))
        room -= len(text)
    yield batch


def _insert_or_earlier(kind: Kind, batch: Batch, start: datetime | None) -> Task | None:
    """Insert the one task; the earlier one of the same kind and idempotency key where there is one."""
    same = Task.objects.filter(kind=kind, idempotency_key=batch[0][0].idempotency_key)
    if earlier := same.first():
        return earlier
    try:
        with transaction.atomic():
            _insert_batch(kind, batch, start)
    except IntegrityError:
        # Two submits at once: the unique index let one in and made the other wait for its commit.
        return same.get()
    return None


def _insert_batch(kind: Kind, batch: Batch, start: datetime | None) -> None:
    """Insert these tasks and their first events, and tell the tasks what the database chose."""
    tasks = [task for task, _ in batch]
    alike = {name: getattr(tasks[0], name) for name in ALIKE}
    each = {
        "ids": [task.pk for task in tasks],
        "payloads": [text for _, text in batch],
        "subjects": [task.subject for task in tasks],
    }
    params = {"kind": kind.pk, "provider": kind.provider_id, "start": start, **alike, **each}
    if (row := _one_row(INSERT, params)) is None:
        # The first task of this kind, or the first since it has had this provider.
        kind.lane()
        row = _one_row(INSERT, params)
    lane_id, now, status, run_after = row
    for task in tasks:
        task.lane_id, task.status, task.run_after, task.event_seq = lane_id, status, run_after, 1
        task.created_at = task.status_at = now
        task._state.adding, task._state.db = False, connection.alias


def _one_row(statement: str, params: Mapping[str, Any]) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchone()


def subject(kind: Kind, payload: Any) -> str:
    """What lists show of a payload: the value at the kind's ``subject`` path, cut to 200 characters."""
    value = payload
    for part in kind.subject.split(".") if kind.subject else ():
        value = value.get(part) if isinstance(value, dict) else None
    if not kind.subject or value is None or isinstance(value, dict | list):
        return ""
    return clean_text(" ".join(str(value).split()))[:200]


def _checked(kind: Kind, payloads: Iterable[Any]) -> list[Any]:
    """The payloads, if all can be taken. Raises SubmitError with the sentence of each that cannot."""
    values = list(payloads)
    bad = {number: why for number, value in enumerate(values) if (why := _why_not(kind, value))}
    if bad:
        raise SubmitError(next(iter(bad.values())).sentence, bad)
    return values


def _why_not(kind: Kind, payload: Any) -> Misfit | None:
    try:
        checked_payload(payload)
    except Unstorable as error:
        return Misfit(str(error))
    return misfit(kind.handler, payload)


def _priority(value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY:
        raise SubmitError(
            _("The priority is %(value)r; it must be a whole number from %(lowest)d to %(highest)d.")
            % {"value": value, "lowest": LOWEST_PRIORITY, "highest": HIGHEST_PRIORITY}
        )
    return value


def _moment(name: str, value: datetime | None) -> datetime | None:
    """A time that the database and every page can bear: at the ends of the calendar a time zone's hours overflow."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        message = _("%(name)s is %(type)s; it must be a datetime with a time zone.")
        raise SubmitError(message % {"name": name, "type": type(value).__name__})
    if timezone.is_naive(value):
        raise SubmitError(_("%(name)s has no time zone; give one, for example UTC.") % {"name": name})
    if abs(value - timezone.now()) > MAX_AWAY:
        message = _("%(name)s is %(value)s, more than %(years)d years from now.")
        raise SubmitError(message % {"name": name, "value": value.isoformat(), "years": MAX_YEARS})
    # PostgreSQL reads no offset beyond 15:59; Python writes up to 23:59.
    return value.astimezone(UTC)


def _check_order(start: datetime | None, end: datetime | None) -> None:
    if start is not None and end is not None and end <= start:
        message = _("expires_at (%(end)s) is not after run_after (%(start)s), so the task could never start.")
        raise SubmitError(message % {"end": end.isoformat(), "start": start.isoformat()})


def _short(name: str, value: str, limit: int = 200) -> str:
    if not isinstance(value, str) or len(value) > limit or clean_text(value) != value:
        raise SubmitError(_("%(name)s must be text of at most %(limit)d characters.") % {"name": name, "limit": limit})
    return value


def _tags(tags: Sequence[str]) -> list[str]:
    if isinstance(tags, str) or len(tags) > MAX_TAGS:
        raise SubmitError(_("tags must be a list of at most %(limit)d texts.") % {"limit": MAX_TAGS})
    return [_short("A tag", tag, 100) for tag in tags]


def _url(value: str) -> str:
    if value:
        try:
            URLValidator(schemes=["http", "https"])(_short("webhook_url", value, 2_000))
        except ValidationError as error:
            raise SubmitError(_("webhook_url is not an http or https URL.")) from error
    return value
