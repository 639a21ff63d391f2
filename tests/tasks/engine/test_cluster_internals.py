"""Every internal of django-q2 that the engine leans on: an upgrade that moves one fails here, by name."""

from __future__ import annotations

import inspect
from importlib.metadata import version
from typing import Any

import django_q.cluster
import django_q.status
import django_q.tasks
import pytest
from django_q.brokers import Broker, get_broker
from django_q.conf import Conf, croniter
from django_q.models import Schedule
from django_q.signing import SignedPackage
from django_q.utils import get_func_repr

from tasks.engine.broker import TaskBroker
from tasks.engine.cluster import Cluster
from tasks.engine.sentinel import Sentinel

STOCK = django_q.cluster


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_version_is_pinned_to_the_minor() -> None:
    assert version("django-q2").startswith("1.11.")


def test_signatures() -> None:
    assert parameters(STOCK.Cluster.__init__) == ["self", "broker"]
    assert parameters(STOCK.Cluster.sig_handler) == ["self", "signum", "frame"]
    assert parameters(STOCK.Sentinel.__init__) == [
        "self",
        "stop_event",
        "start_event",
        "cluster_id",
        "broker",
        "timeout",
        "start",
    ]
    assert parameters(STOCK.Sentinel.reincarnate) == ["self", "process"]
    for name in ("start", "stop", "guard", "spawn_cluster", "spawn_worker", "spawn_pusher", "spawn_monitor"):
        assert parameters(getattr(STOCK.Sentinel, name)) == ["self"]
    assert parameters(django_q.tasks._sync) == ["package"], "ours"
    assert parameters(django_q.tasks.async_chain) == ["chain", "group", "cached", "sync", "broker"]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (
            STOCK.Sentinel.guard,
            "start_event set pool timer get_lock is_alive value reincarnate monitor pusher scheduler broker "
            "stop_event wait stop GUARD_CYCLE SCHEDULER",
        ),
        (STOCK.Sentinel.reincarnate, "monitor pusher spawn_pusher pool remove spawn_worker timer value terminate"),
        (STOCK.Sentinel.spawn_cluster, "pool pool_size spawn_worker monitor spawn_monitor pusher spawn_pusher"),
        (STOCK.Sentinel.status, "start_event stop_event is_set result_queue task_queue empty"),
        (django_q.status.Stat.__init__, "result_queue task_queue qsize monitor pusher pool pid status"),
        (django_q.status.Stat.save, "broker set_stat"),
        (django_q.tasks.async_task, "_sync get_broker enqueue pre_enqueue"),
        (django_q.tasks.result, "Task get_result result_cached"),
        (django_q.tasks.fetch, "Task get_task fetch_cached"),
        (django_q.tasks.count_group, "Task get_group_count count_group_cached"),
        (Schedule.calculate_next_run, "croniter localtime"),
    ],
)
def test_what_its_functions_look_up(function: Any, names: str) -> None:
    assert set(names.split()) <= set(function.__code__.co_names)


def test_the_guard_takes_the_lock_of_each_timer_and_waits_on_the_stop_event_once_a_round() -> None:
    source = inspect.getsource(STOCK.Sentinel.guard)
    assert "with p.timer.get_lock():" in source
    assert "if not p.is_alive() or p.timer.value == 0:" in source
    assert source.count("self.stop_event.wait(cycle)") == 1
    assert source.count("scheduler(broker=self.broker)") == 1
    assert source.rstrip().endswith("self.stop()")


def test_the_pool_is_changed_by_remove_and_append() -> None:
    source = inspect.getsource(STOCK.Sentinel.reincarnate)
    assert source.index("self.pool.remove(process)") < source.index("self.spawn_worker()")


def test_the_sentinel_takes_its_size_and_cycle_from_the_settings() -> None:
    assert Conf.GUARD_CYCLE == 0.2
    assert Conf.SCHEDULER is True
    assert Conf.SYNC is False
    assert Conf.CLUSTER_NAME == Conf.PREFIX == "redrive"


def test_cron_is_there() -> None:
    assert croniter is not None
    source = inspect.getsource(django_q.tasks.async_task)
    assert source.index("get_broker(") < source.index("_sync("), "our module is imported before it is looked up"


def test_our_classes_replace_what_can_hang_and_keep_the_rest() -> None:
    assert Cluster.start is not STOCK.Cluster.start
    assert Cluster.stop is not STOCK.Cluster.stop
    assert Cluster.sig_handler is not STOCK.Cluster.sig_handler
    assert Sentinel.stop is not STOCK.Sentinel.stop
    assert Sentinel.guard is STOCK.Sentinel.guard
    assert Sentinel.spawn_cluster is STOCK.Sentinel.spawn_cluster


def test_the_broker_is_found_by_its_setting_and_overrides_every_verb() -> None:
    assert type(get_broker()) is TaskBroker
    verbs = {name for name, value in vars(Broker).items() if inspect.isfunction(value) and not name.startswith("_")}
    assert verbs <= set(vars(TaskBroker))


def test_a_package_is_signed_text_around_a_dictionary() -> None:
    package = SignedPackage.dumps({"func": "math.sqrt", "args": (4,)})
    assert isinstance(package, str)
    assert SignedPackage.loads(package) == {"func": "math.sqrt", "args": (4,)}
    assert get_func_repr(parameters) == f"{__name__}.parameters"
