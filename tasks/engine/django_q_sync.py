"""``async_task(…, sync=True)``: the call runs at once, in its caller's process, and is recorded when it is over."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.db import DatabaseError

from tasks.engine import django_q_call, judge
from tasks.engine.broker import DJANGO_Q_CALL, described, ensure_kind
from tasks.engine.catalogue import load_catalogue
from tasks.engine.django_q_call import Place
from tasks.errors import ConfigurationFault, Failure
from tasks.lifecycle import FailureRecord, SubmitError, record_run
from tasks.lifecycle.clean import storable_result
from tasks.models import Attempt

logger = logging.getLogger(__name__)


def run_here(package: str) -> str:
    """Run one signed package; django-q2's id of the call.

    Raises what the function raises, once it is recorded as a dead letter; nothing is retried. A call that cannot be
    made raises what it does under django-q2: the import's error, TypeError, or ValueError where there is no function.
    """
    began = time.monotonic()
    payload, options = described(package)
    try:
        call = django_q_call.unpacked(payload)
        value = django_q_call.execute(call)
    except Exception as error:
        _record(payload, options, began, error=error)
        if isinstance(error, ConfigurationFault):
            raise (error.__cause__ or ValueError(str(error))) from None
        raise
    attempt = _record(payload, options, began, value=value)
    if attempt is not None:
        django_q_call.succeeded(call, Place(attempt.task_id, attempt.pk, sync=True))
    return str(call["id"])


def _record(
    payload: dict[str, Any], options: dict[str, Any], began: float, *, value: Any = None, error: Exception | None = None
) -> Attempt | None:
    seconds = time.monotonic() - began
    try:
        ensure_kind()
        failed = _failure(error) if error else None
        text = None if error else storable_result(django_q_call.kept(value))
        return record_run(DJANGO_Q_CALL, payload, seconds=seconds, result_text=text, failed=failed, **options)
    except (DatabaseError, SubmitError):
        if error is None:
            raise
        # The caller's transaction is broken, or the database away: what the function raised tells more.
        logger.exception("The failure of a call that ran at once could not be recorded.")
        return None


def _failure(error: Exception) -> FailureRecord:
    failure = Failure.from_exception(error)
    return judge.record(failure, load_catalogue().classify(failure, DJANGO_Q_CALL))
