"""django-q2's broker on our queue: each ``async_task`` and each due ``Schedule`` becomes a task of one kind."""

from __future__ import annotations

from typing import Any, NoReturn
from uuid import UUID

from django.core.cache.backends.dummy import DummyCache
from django.db import Error, connection
from django.db.models import QuerySet
from django_q import tasks as stock
from django_q.brokers import Broker
from django_q.models import Task as DjangoQTask
from django_q.signing import SignedPackage
from django_q.utils import get_func_repr

from tasks.engine.outline import outline
from tasks.lifecycle import cancel, submit
from tasks.lifecycle.clean import clean_text
from tasks.models import Kind, Task
from tasks.models.ranges import LONGEST_TIMEOUT
from tasks.states import PENDING, Status

#: The kind, and the handler that runs it.
DJANGO_Q_CALL = "django_q.call"
ACTOR = "django-q"
#: Calls that one transaction of a purge cancels.
PURGED_AT_ONCE = 1_000
#: Longer groups and ids of calls, which people may choose, are no tag and no trace.
LONGEST_TAG, LONGEST_TRACE = 100, 200


def ensure_kind() -> None:
    """Make the kind where it is missing. What people configure on it stays."""
    defaults = {
        "handler": DJANGO_Q_CALL,
        # A call may have had any effect before its process vanished.
        "safe_to_rerun": False,
        "subject": "func",
        # As django-q2's own default, none: a function in a thread cannot be stopped, only called a failure once it has
        # ended, and then it would run again.
        "timeout_seconds": LONGEST_TIMEOUT,
    }
    Kind.objects.get_or_create(name=DJANGO_Q_CALL, defaults=defaults)


def described(package: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(payload, options of ``submit``) for a package that django-q2 has signed.

    A package that cannot be unpacked here is taken all the same: where it runs, its reason is recorded.
    """
    call = _opened(package)
    group = clean_text(str(call.get("group") or ""))
    payload = {
        "func": clean_text(name_of(call.get("func"))),
        "name": clean_text(str(call.get("name") or "")),
        "group": group,
        "cluster": clean_text(str(call.get("cluster") or "")),
        "package": package,
    }
    # Its own id, which async_task returned to the caller, finds the task at the console.
    trace = clean_text(str(call.get("id") or ""))
    tags = [group] if 0 < len(group) <= LONGEST_TAG else []
    return payload, {"trace_id": trace if len(trace) <= LONGEST_TRACE else "", "tags": tags}


def _opened(package: str) -> dict[str, Any]:
    try:
        return dict(SignedPackage.loads(package))
    except Exception:  # unpickling runs the code of whatever was packed
        call: dict[str, Any] = outline(package)
        return call


def name_of(function: Any) -> str:
    """The dotted path of a function, or what comes nearest to it; empty for None."""
    if isinstance(function, str):
        return function
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return f"{module}.{name}" if module and name else str(get_func_repr(function) or "")


class TaskBroker(Broker):  # type: ignore[misc]  # django-q2 is untyped
    """Puts django-q2's packages into our queue. Workers claim for themselves: nothing is ever taken out through it.

    ``once``: an idempotency key; a second package under the same key is the first one's task.
    """

    def __init__(self, list_key: str | None = None, *, once: str = "") -> None:
        super().__init__(list_key)
        self._once = once

    def enqueue(self, task: str) -> UUID:
        """Submit one signed package as a task, in the caller's transaction; the task's id.

        Opens and closes no connection: the scheduler calls this inside its own transaction, which must take the task
        with it. Raises SubmitError for a package above the size of a payload.
        """
        payload, options = described(task)
        ensure_kind()
        return submit(DJANGO_Q_CALL, payload, idempotency_key=self._once, **options).id

    def dequeue(self) -> list[Any]:
        """Refuse. Raises RuntimeError: whoever calls this is not our sentinel."""
        raise RuntimeError("Redrive's workers claim tasks from the database; run 'python manage.py qcluster'.")

    def queue_size(self) -> int:
        """Calls that wait to run."""
        return self._calls().filter(status__in=PENDING).count()

    def lock_size(self) -> int:
        """Calls under way."""
        return self._calls().filter(status=Status.RUNNING).count()

    def purge_queue(self) -> int:
        """Cancel the calls that wait, some at a time; how many. Their rows stay."""
        waiting = self._calls().filter(status__in=PENDING).order_by("id").values_list("id", flat=True)
        cancelled, ids = 0, list(waiting[:PURGED_AT_ONCE])
        while ids:
            cancelled += len(cancel(ids, actor=ACTOR))
            ids = list(waiting.filter(id__gt=ids[-1])[:PURGED_AT_ONCE])
        return cancelled

    def delete_queue(self) -> int:
        """As ``purge_queue``: the queue itself is a table that stays."""
        return self.purge_queue()

    def delete(self, task_id: UUID) -> None:
        """Cancel one call."""
        cancel([task_id], actor=ACTOR)

    def acknowledge(self, task_id: UUID) -> None:
        """Nothing to do: a task ends where its attempt is saved."""

    def fail(self, task_id: UUID) -> None:
        """Nothing to do: a failure is recorded with its attempt."""

    def ping(self) -> bool:
        """Whether the database answers."""
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except Error:
            return False
        return True

    def info(self) -> str:
        """What django-q2's own commands show as the broker."""
        return "Redrive tasks in PostgreSQL"

    def set_stat(self, key: str, value: str, timeout: int) -> None:
        """Nothing is kept: the guard would wait for the cache each round, and our worker rows say it better."""

    def get_stat(self, key: str) -> None:
        """Nothing is kept."""

    def get_stats(self, pattern: str) -> list[Any]:
        """Nothing is kept."""
        return []

    @staticmethod
    def get_cache() -> DummyCache:
        """One that keeps nothing: ``async_iter`` would leave its arguments there for ever."""
        return _NoResults("", {})

    @staticmethod
    def _calls() -> QuerySet[Task]:
        return Task.objects.filter(kind=DJANGO_Q_CALL)


class _NoResults(DummyCache):
    def get(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse."""
        _refuse_results()


def _refuse_results(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        "Redrive keeps no results for django-q2's result(), fetch() and count_group(). Read the task:"
        " tasks.models.Task.objects.get(trace_id=ID), where ID is what async_task returned."
    )


def _run_here(package: str) -> str:
    """In place of django-q2's simulation of a cluster within the process."""
    from tasks.engine.django_q_sync import run_here

    return run_here(package)


# async_task looks it up for ``sync=True`` after it has asked for the broker, which imports this module.
stock._sync = _run_here
# Its table of results stays empty. Answers from there would say for ever that nothing has ended yet, and whoever waits
# for them (Chain.result() does, whatever its wait) would never return.
for reader in ("get_result", "get_result_group", "get_group_count", "get_task", "get_task_group"):
    setattr(DjangoQTask, reader, staticmethod(_refuse_results))
