"""What the database itself refuses: a changed row of a history, whatever changes along with it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, models, transaction

from tasks import audit
from tasks.models import Attempt, OperatorAction, PromptVersion, Task, TaskEvent
from tasks.states import Status
from tests.factories import make_attempt, make_kind, make_task, make_user

pytestmark = pytest.mark.django_db


def other_value(value: Any) -> Any:
    """A value of the same sort."""
    if isinstance(value, datetime):
        return value - timedelta(days=1)
    if isinstance(value, dict | UUID):
        return {"forged": True} if isinstance(value, dict) else uuid4()
    return f"{value}x"[-1:] if isinstance(value, str) else value + 1


def forgeries(row: models.Model, **besides: Any) -> dict[str, bool]:
    """Of each column whether the database takes a change of it, together with the changes ``besides``."""
    columns = [field.attname for field in row._meta.concrete_fields if not field.primary_key]
    rows = type(row)._default_manager.filter(pk=row.pk)
    taken = {}
    for column in columns:
        if column not in besides:
            changes = {**besides, column: other_value(getattr(row, column))}
            try:
                with transaction.atomic():
                    rows.update(**changes)
                taken[column] = True
            except IntegrityError as error:
                assert "are never changed" in str(error)
                taken[column] = False
    return taken


def an_event() -> TaskEvent:
    """One with an attempt."""
    make_task(Status.SUCCEEDED)
    return TaskEvent.objects.filter(attempt__isnull=False)[0]


def an_action() -> OperatorAction:
    """One with a user."""
    return audit.record(make_user(), "reprocess", target_type="letter", target_id="7", reason="why", filter={"q": "x"})


@pytest.mark.parametrize("history", [Attempt, TaskEvent])
def test_a_task_is_not_deleted_before_its_history(history: type[models.Model]) -> None:
    task = make_task(Status.SUCCEEDED)
    for other in {Attempt, TaskEvent} - {history}:
        other.objects.filter(task=task).delete()
    assert history._default_manager.filter(task=task).exists()
    with pytest.raises(IntegrityError, match="still has attempts or events"), transaction.atomic():
        Task.objects.filter(pk=task.pk)._raw_delete("default")
    history._default_manager.filter(task=task).delete()
    Task.objects.filter(pk=task.pk)._raw_delete("default")
    assert not Task.objects.exists()


@pytest.mark.parametrize(("make", "pointer"), [(an_event, "attempt_id"), (an_action, "user_id")])
def test_no_column_of_a_history_is_changed_not_even_while_its_pointer_goes(make: Any, pointer: str) -> None:
    row = make()
    alone, with_pointer = forgeries(row), forgeries(row, **{pointer: None})
    assert len(alone) > 5
    assert {name for name, taken in {**alone, **with_pointer}.items() if taken} == set()
    assert type(row).objects.filter(pk=row.pk).values().get() == {
        field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields
    }


def test_a_pointer_is_not_turned_to_another_row() -> None:
    event, action = an_event(), an_action()
    another = make_attempt(make_task(Status.RETRYABLE))
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        TaskEvent.objects.filter(pk=event.pk).update(attempt=another)
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        OperatorAction.objects.filter(pk=action.pk).update(user=make_user("bo"))


def test_what_has_no_pointer_is_not_given_one() -> None:
    event = TaskEvent.objects.get(task=make_task(), type="submitted")
    attempt = make_attempt(make_task(Status.RETRYABLE))
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        TaskEvent.objects.filter(pk=event.pk).update(attempt=attempt)
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        TaskEvent.objects.filter(pk=event.pk).update(attempt=None, actor="forged")


def test_a_history_outlives_what_it_points_to() -> None:
    event, action = an_event(), an_action()
    User.objects.all().delete()
    assert OperatorAction.objects.values_list("user", "username").get(pk=action.pk) == (None, "ana")
    TaskEvent.objects.filter(pk=event.pk).update(attempt=None)
    assert TaskEvent.objects.values_list("attempt", "type").get(pk=event.pk) == (None, event.type)
    event.task.delete()
    assert not TaskEvent.objects.filter(task=event.task_id).exists()


def test_an_ended_attempt_and_a_prompt_version_stay_as_they_are() -> None:
    attempt = make_attempt(make_task(Status.RETRYABLE))
    for rows, change in (
        (Attempt.objects.filter(pk=attempt.pk), {"last_error": "forged"}),
        (Attempt.objects.filter(pk=attempt.pk), {"worker": None, "last_error": "forged"}),
        (PromptVersion.objects.filter(kind=make_kind()), {"prompt": "forged"}),
    ):
        with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
            rows.update(**change)
