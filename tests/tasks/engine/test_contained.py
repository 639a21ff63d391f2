"""What ends a process ends only its own task, in a loop that runs others."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tasks import lifecycle
from tasks.engine.contained import run_contained
from tasks.models import Attempt, Kind, WorkerProcess
from tests.cluster import QCluster, wait_until
from tests.tasks.lifecycle import world


async def leave() -> None:
    sys.exit("I have had enough")


async def interrupt() -> None:
    raise KeyboardInterrupt


def in_a_task() -> None:
    started.append(asyncio.create_task(leave()))


def interrupted() -> None:
    started.append(asyncio.create_task(interrupt()))


def in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(sys.exit)


def stopping_the_loop() -> None:
    asyncio.get_running_loop().stop()


started: list[asyncio.Task[None]] = []


@pytest.mark.parametrize("stray", [in_a_task, interrupted, in_a_callback, stopping_the_loop])
def test_the_others_of_the_loop_go_on(stray: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> list[int]:
        async def other(number: int) -> int:
            for _ in range(3):
                await asyncio.sleep(0)
            return number

        others = [asyncio.create_task(other(n)) for n in range(3)]
        stray()
        ready = asyncio.create_task(other(3))
        await asyncio.sleep(0.01)
        for task in started:
            with suppress(SystemExit, KeyboardInterrupt):
                await task
        started.clear()
        return await asyncio.gather(*others, ready)

    assert run_contained(main()) == [0, 1, 2, 3]
    assert caplog.text.count("the process lives on") == 1


def test_an_error_of_main_is_its_own() -> None:
    async def main() -> None:
        raise RuntimeError("Event loop stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        run_contained(main())


def test_main_itself_may_leave() -> None:
    with pytest.raises(SystemExit, match="had enough"):
        run_contained(leave())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("awaited", [True, False], ids=["awaited", "left behind"])
def test_a_handlers_task_that_leaves_fails_its_work_and_no_other(
    test_database_url: str, tmp_path: Path, awaited: bool
) -> None:
    """Where the handler waits for it, its attempt fails with that; where not, it goes on."""
    for name in ("quit", "measure"):
        Kind.objects.create(name=name, handler=f"workshop.{name}", max_attempts=1)
    with QCluster(test_database_url, REDRIVE_APPS="tests.tasks.engine.workshop", REDRIVE_WORKERS=1) as cluster:
        cluster.wait_ready()
        measured = lifecycle.submit("measure", {"until": str(tmp_path / "until")})
        wait_until(lambda: world.stored(measured.id).progress, "the other under way")
        quits = lifecycle.submit("quit", {"awaited": awaited})
        wait_until(lambda: world.stored(quits.id).status in ("dead", "succeeded"), "its end")
        (tmp_path / "until").touch()
        wait_until(lambda: world.stored(measured.id).status == "succeeded", "the end of the other")
    attempt = Attempt.objects.get(task=quits)
    assert attempt.outcome == ("failed" if awaited else "succeeded")
    assert ("SystemExit" in attempt.last_error) is awaited
    assert Attempt.objects.get(task=measured).outcome == "succeeded"
    assert WorkerProcess.objects.filter(role="worker").count() == 1
