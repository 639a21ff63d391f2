"""Runs what django-q2's ``async_task`` was asked for: the function, then the next of its chain, then its hook."""

from __future__ import annotations

import asyncio
import inspect
import logging
import pydoc
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from django_q.models import Task as DjangoQTask
from django_q.signals import post_execute, post_execute_in_worker, pre_execute
from django_q.signing import BadSignature, SignedPackage
from django_q.tasks import async_chain
from django_q.utils import get_func_repr

from tasks.engine.broker import TaskBroker, name_of
from tasks.engine.context import Context
from tasks.engine.trouble import Trouble, trouble
from tasks.errors import ConfigurationFault, mask_secrets
from tasks.errors.text import as_text
from tasks.lifecycle import goes_on, note
from tasks.lifecycle.clean import Unstorable, clean_text, storable_result
from tasks.lifecycle.locks import leave_no_locks_behind
from tasks.models import Attempt

logger = logging.getLogger(__name__)
#: Characters of a hook's error in the task's history; the whole stands in the log.
HOOK_ERROR_SHOWN = 500
RETRY_SECONDS = 0.5
#: How long the next call of a chain is tried to be sent: longer than another session may idle with our task's row.
PATIENCE_SECONDS = 90.0
PASSING = {Trouble.AWAY, Trouble.BUSY}
#: Of one try, for that row.
ROW_WAIT = "2s"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call runs, for what is noted about it. ``sync``: in the process of its caller."""

    task_id: UUID
    attempt_id: int
    sync: bool = False


def run(context: Context) -> Any:
    """The function's value, as it can be stored. Blocks: call it in a thread.

    The payload is as ``TaskBroker.enqueue`` or the scheduler wrote it. Raises ConfigurationFault, which no retry mends,
    for a call that cannot be made: a package that this SECRET_KEY did not sign or that cannot be unpacked, a function
    that does not exist or whose module does not import, arguments that do not fit, a schedule that cannot be read. Else
    it raises what the function raises.
    """
    place = Place(context.task_id, context.attempt_id)
    call = unpacked(context.payload)
    try:
        value = execute(call)
    except Exception:
        failed(call, place)
        raise
    succeeded(call, place)
    return kept(value)


def unpacked(payload: Any) -> dict[str, Any]:
    """django-q2's call. Raises ConfigurationFault."""
    if not isinstance(payload, Mapping):
        raise ConfigurationFault("The payload is no call of django-q2.")
    if problem := payload.get("problem"):
        raise ConfigurationFault(str(problem))
    try:
        call = dict(SignedPackage.loads(str(payload.get("package", ""))))
        call["func"], call["args"], call["kwargs"], call["id"]
    except BadSignature as error:
        raise ConfigurationFault(
            "The call was signed with another SECRET_KEY than this worker has, so it is not unpacked."
        ) from error
    except Exception as error:
        raise ConfigurationFault(f"The call cannot be unpacked: {_told(error)}") from error
    return call


def execute(call: dict[str, Any]) -> Any:
    """Call the function; its value, awaited where it is a coroutine. Raises ConfigurationFault, or what it raises.

    ``call`` learns of the end what django-q2 tells hooks and signals.
    """
    try:
        function = located(call["func"])
        _check_arguments(function, call)
    except ConfigurationFault as error:
        _end(call, error=error)
        raise
    pre_execute.send(sender="django_q", func=function, task=call)
    try:
        value = function(*call["args"], **call["kwargs"])
        value = asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value
    except Exception as error:
        _end(call, error=error)
        raise
    else:
        _end(call, value)
        return value
    finally:
        post_execute_in_worker.send_robust(sender="django_q", func=function, task=call)


def _end(call: dict[str, Any], value: Any = None, error: Exception | None = None) -> None:
    text = "".join(traceback.format_exception(error)) if error else ""
    result = f"{as_text(error)} : {text}" if error else value
    call.update(result=result, success=error is None, stopped=timezone.now())


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def located(name: Any) -> Callable[..., Any]:
    """The function itself, or the one that a dotted path names. Raises ConfigurationFault where there is none."""
    if callable(name):
        found: Callable[..., Any] = name
        return found
    try:
        function = pydoc.locate(str(name))
    except Exception as error:  # the module is there and does not import
        raise ConfigurationFault(f"The function {name!r} cannot be imported: {_told(error)}") from error
    if not callable(function):
        raise ConfigurationFault(f"The function {name!r} does not exist for this worker.")
    return function


def _check_arguments(function: Callable[..., Any], call: Mapping[str, Any]) -> None:
    """Told apart from a TypeError within the function, which may be anything."""
    try:
        # What a decorator wraps may take other arguments than the decorator.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return  # written in C: it tells when it is called
    try:
        signature.bind(*call["args"], **call["kwargs"])
    except TypeError as error:
        raise ConfigurationFault(
            f"The function {name_of(function)!r} cannot be called with these arguments: {error}."
        ) from error


def succeeded(call: Mapping[str, Any], place: Place) -> None:
    """What follows a call that went well: the next of its chain, its hook. Only the chain's failure is raised."""
    # Before the hook, which may do anything.
    _continue_chain(call, place)
    _call_hook(call, place)
    post_execute.send_robust(sender="django_q", task=call)


def failed(call: Mapping[str, Any], place: Place) -> None:
    """What follows an attempt that failed: its hook hears of it. The chain waits for a retry, or for a reprocess."""
    _call_hook(call, place)
    post_execute.send_robust(sender="django_q", task=call)


def kept(value: Any) -> Any:
    """The value where it can be stored, else a sentence in its place: what was done must not be done again for that."""
    try:
        storable_result(value)
    except Unstorable as error:
        return f"The value was not kept. {error}"
    return value


def _continue_chain(call: Mapping[str, Any], place: Place) -> None:
    """Submit the next call of a chain, once however often this call is run. In its caller's process: run it.

    A chain ends with a call that was cancelled meanwhile (its function, in a thread, could not be stopped), or whose
    process was declared lost; its history says so.
    """
    if not call.get("chain"):
        return
    if place.sync:
        _send_next(call, sync=True)
        return
    try:
        _send_next_patiently(call, place)
    except DatabaseError:
        raise
    except Exception as error:
        raise ConfigurationFault(
            f"The function has run, but the next call of its chain cannot be sent: {_told(error)}"
        ) from error


def _send_next_patiently(call: Mapping[str, Any], place: Place) -> None:
    """A database that is away, or a row that is held, is waited for: giving up would have the function run again."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with transaction.atomic():
                leave_no_locks_behind(lock_timeout=ROW_WAIT)
                if goes_on(place.task_id, place.attempt_id):
                    _send_next(call, sync=False)
                else:
                    note([(place.task_id, "chain_ended", place.attempt_id, "", {})])
            return
        except DatabaseError as error:
            what = trouble(error)
            if what not in PASSING or connection.in_atomic_block or time.monotonic() > deadline:
                raise
            if what is Trouble.AWAY:
                connection.close()
            time.sleep(RETRY_SECONDS)


def _send_next(call: Mapping[str, Any], *, sync: bool) -> None:
    # It takes the first call off the list that it is given, and its options into that call's.
    chain = [(*link[:2], dict(link[2])) if _has_options(link) else link for link in call["chain"]]
    broker = TaskBroker(once=f"{call['id']}/next")
    async_chain(chain, group=call.get("group"), cached=call.get("cached", False), sync=sync, broker=broker)


def _has_options(link: Any) -> bool:
    return isinstance(link, tuple) and len(link) > 2


def _call_hook(call: Mapping[str, Any], place: Place) -> None:
    """Tell the hook. Its own failure is noted on the task and makes nothing else fail."""
    hook = call.get("hook")
    if not hook:
        return
    try:
        located(hook)(_as_django_q_task(call, place))
    except Exception as error:
        logger.exception("The hook %r of the call %r failed.", hook, call.get("name"))
        _note_failed_hook(name_of(hook), error, place)


def _note_failed_hook(hook: str, error: Exception, place: Place) -> None:
    told = clean_text(mask_secrets(_told(error)))[:HOOK_ERROR_SHOWN]
    try:
        note([(place.task_id, "hook_failed", place.attempt_id, "", {"hook": clean_text(hook)[:200], "error": told})])
    except DatabaseError:
        logger.exception("That could not be noted on the task %s.", place.task_id)


def _as_django_q_task(call: Mapping[str, Any], place: Place) -> DjangoQTask:
    """What a hook is given: django-q2's task object, not saved."""
    names = ("id", "name", "hook", "args", "kwargs", "group", "cluster", "started", "stopped", "result", "success")
    fields = {name: call.get(name) for name in names}
    attempts = Attempt.objects.filter(task=place.task_id).count()
    return DjangoQTask(func=get_func_repr(call["func"]), attempt_count=attempts, **fields)


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {as_text(error)}"
