"""Where a task begins: in the caller's transaction, so that it commits or rolls back with the caller's own rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.db import IntegrityError, connection, transaction
from django.db.models import JSONField, Value
from django.utils import timezone
from django.utils.translation import gettext as _

from tasks.lifecycle.announce import announce_ready
from tasks.lifecycle.clean import Unstorable, checked_payload, clean_text
from tasks.models import Kind, Task, TaskEvent
from tasks.models.ranges import HIGHEST_PRIORITY, LOWEST_PRIORITY
from tasks.payload_schemas import Misfit, misfit
from tasks.states import Status

BATCH = 500
MAX_TAGS = 50
#: How far from now a task may start or expire; what lies beyond is a slip, such as milliseconds taken for seconds.
MAX_YEARS = 10
MAX_AWAY = timedelta(days=365.25 * MAX_YEARS)


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
    tasks = [Task(payload=_json(value), subject=subject(known, value), **fields) for value in values]
    if idempotency_key and len(tasks) != 1:
        raise SubmitError(
            _("An idempotency key names one task; %(count)d payloads were given.") % {"count": len(tasks)}
        )
    stored = _insert(known, tasks, start) if tasks else []
    for task in stored:
        task.payload = None if isinstance(task.payload, Value) else task.payload
    return stored


def _insert(kind: Kind, tasks: list[Task], start: datetime | None) -> list[Task]:
    lane = kind.lane()
    with transaction.atomic():
        now = _database_now()
        for task in tasks:
            task.lane = lane
            task.status = Status.SCHEDULED if start and start > now else Status.READY
            task.run_after = start if start and start > now else now
            task.created_at = task.status_at = now
            task.event_seq = 1
        if tasks[0].idempotency_key and (earlier := _insert_or_earlier(tasks[0])):
            return [earlier]
        if not tasks[0].idempotency_key:
            Task.objects.bulk_create(tasks, batch_size=BATCH)
        TaskEvent.objects.bulk_create(
            [TaskEvent(task=task, seq=1, type="submitted", to_status=task.status, cycle=1, at=now) for task in tasks],
            batch_size=BATCH,
        )
        if any(task.status == Status.READY for task in tasks):
            announce_ready()
    return tasks


def _insert_or_earlier(task: Task) -> Task | None:
    """Insert ``task``; the earlier one of the same kind and idempotency key where there is one."""
    same = Task.objects.filter(kind=task.kind, idempotency_key=task.idempotency_key)
    if earlier := same.first():
        return earlier
    try:
        with transaction.atomic():
            task.save(force_insert=True)
    except IntegrityError:
        # Two submits at once: the unique index let one in and made the other wait for its commit.
        return same.get()
    return None


def _database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        (now,) = cursor.fetchone()
    return now  # type: ignore[no-any-return]


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


def _json(value: Any) -> Any:
    """A bare None would be stored as SQL's NULL; the payload ``null`` is a value like any other."""
    return Value(None, JSONField()) if value is None else value


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
    return value


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
            URLValidator(schemes=["http", "https"])(value)
        except ValidationError as error:
            raise SubmitError(_("webhook_url is not an http or https URL.")) from error
    return value
