"""An event loop that lives on when something in it would end it: sys.exit(), KeyboardInterrupt, ``loop.stop()``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

logger = logging.getLogger(__name__)
T = TypeVar("T")


def run_contained(main: Coroutine[Any, Any, T]) -> T:
    """``asyncio.run``, but only ``main`` itself ends it. For a process that takes its stop signals in the loop.

    asyncio lets SystemExit and KeyboardInterrupt of any task or callback through to whoever runs the loop: a task that
    a handler started could end a process which runs others. The task has its exception by then, for whoever awaits it,
    and the loop has lost nothing, so it is entered again. So it is when somebody has stopped it.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(main)
        while True:
            try:
                return loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt) as error:
                if task.done():
                    raise
                logger.error("%s was raised beside an attempt; the process lives on.", _said(error), exc_info=error)
            except RuntimeError:
                # asyncio's, for a loop that was stopped; the main task's own is that task's end.
                if task.done() or loop.is_closed():
                    raise
                logger.error("The event loop was stopped beside an attempt; the process lives on.")


def _said(error: BaseException) -> str:
    return "sys.exit()" if isinstance(error, SystemExit) else type(error).__name__
