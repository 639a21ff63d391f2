"""A simulated LLM provider: a real HTTP server that speaks the OpenAI chat protocol and fails on demand.

``python -m tasks.demo.provider --port 0 --log FILE`` prints ``listening: PORT`` and serves until SIGTERM or SIGINT.
The fault, the delay and more are chosen by the base URL, so that a provider for each fault is a row of configuration:

    http://127.0.0.1:PORT/v1                                all is well
    http://127.0.0.1:PORT/fault/rate_limit_plain/v1         one fault of ``faults.FAULTS``
    http://127.0.0.1:PORT/delay/500-3000/v1                 an answer takes 0.5 to 3 s (milliseconds)
    …/times/1/fault/error_500/v1                            a task meets the fault once, then all is well
    …/retry-after/5/fault/rate_limit_retry_after/v1         the value of the header
    …/chunks/300/v1                                         into how many pieces a streamed answer is cut at most

The witness log has one line per event: ``request`` when a request has arrived whole (``seconds``: how long its answer
is to take), then exactly one of ``answered`` (its last byte was handed over just before), ``cut`` (the provider broke
off on purpose) and ``closed`` (the client left first, or the provider was stopped). A request without a second line
was under way when the provider itself was killed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import resource
import signal
import socket
import sys
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from tasks.demo.chat import Address, Call, NotAsked, parse_address, parse_call
from tasks.demo.draw import seeded
from tasks.demo.faults import reply_to
from tasks.demo.http import LOST, Connection, Ended, Malformed, Request
from tasks.demo.replies import Reply, Response, error_body, json_response
from tasks.demo.sending import Ending, Exchange
from tasks.demo.witness import Witness

logger = logging.getLogger(__name__)

MODELS = ("simulated-small", "simulated-large")
DEFAULT_DELAY = (1.0, 4.0)
DEFAULT_CHUNKS = 24
BACKLOG = 1024
#: How many tasks are remembered with the number of their calls.
REMEMBERED = 200_000


class CallCounts:
    """How often something was asked, for the things asked about most recently."""

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, ...], int] = OrderedDict()

    def next(self, *key: str) -> int:
        """Counts one more and gives the count, from 1."""
        count = self._counts.pop(key, 0) + 1
        self._counts[key] = count
        if len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)
        return count


class SimulatedProvider:
    """The server. ``delay``: seconds from, to, of an answer whose address names none; ``seed`` fixes what is drawn."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        log_path: Path | None = None,
        delay: tuple[float, float] = DEFAULT_DELAY,
        seed: int = 0,
    ) -> None:
        self._host = host
        self.port = port
        self._delay = delay
        self._seed = seed
        self._witness = Witness(log_path)
        self._counts = CallCounts()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket | None = None) -> None:
        """Listens, on ``listener`` where one is given; ``port`` is then the true one. Raises OSError: port taken."""
        if listener is not None:
            self._server = await asyncio.start_server(self._serve, sock=listener, backlog=BACKLOG)
        else:
            self._server = await asyncio.start_server(self._serve, self._host, self.port, backlog=BACKLOG)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stops listening and breaks off what is under way."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._witness.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Not ended by an exception: the server would report a cancelled connection as an error of ours.
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._tasks.add(task)
        connection = Connection(reader, writer)
        try:
            await self._exchanges(connection)
        except asyncio.CancelledError:
            connection.abort()  # Stopped; a client that does not read must not hold us up.
        except (*LOST, Ended):
            pass  # The client left; what was under way is noted where it ran.
        finally:
            self._tasks.discard(task)
            await connection.close()

    async def _exchanges(self, connection: Connection) -> None:
        while True:
            try:
                request = await connection.request()
            except Malformed as error:
                refusal = json_response(error.status, error_body(str(error), "invalid_request_error", None))
                await _exchange(connection).send(refusal)
                return
            if request is None or not await self._attend(connection, request):
                return

    async def _attend(self, connection: Connection, request: Request) -> bool:
        """One request from its arrival to its one noted end; whether the connection may be used again."""
        request_id = f"req_{uuid.uuid4().hex}"
        address, call, reply = self._understand(request)
        marks: dict[str, Any] = {"id": request_id, "path": request.path}
        if call is not None:
            fault, stream = address.fault, call.stream
            marks |= {"task": call.task, "cycle": call.cycle, "attempt": call.attempt, "call": call.number}
            marks |= {"fault": fault, "stream": stream}
        exchange = self._paced(connection, address, call, request_id)
        self._witness.note("request", **marks, seconds=round(exchange.seconds, 3))
        before = connection.bytes_sent
        ending = await self._watched(exchange, reply, marks)
        self._witness.note(
            ending.event, **marks, status=ending.status, good=ending.good, bytes=connection.bytes_sent - before
        )
        return ending.event == "answered" and request.headers.get("connection", "").lower() != "close"

    async def _watched(self, exchange: Exchange, reply: Reply, marks: dict[str, Any]) -> Ending:
        sending = asyncio.ensure_future(exchange.send(reply))
        leaving = asyncio.ensure_future(exchange.connection.gone())
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return sending.result() if sending.done() else Ending("closed")
        except asyncio.CancelledError:
            self._witness.note("closed", **marks, status=None, good=False, stopped=True)
            raise
        except LOST:
            return Ending("closed")
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    def _understand(self, request: Request) -> tuple[Address, Call | None, Reply]:
        address = Address("")
        try:
            address = parse_address(request.path)
            wanted = {"chat/completions": "POST", "models": "GET"}.get(address.resource)
            if wanted is None:
                raise NotAsked(f"Unknown request URL: {request.method} {request.path}.", status=404)
            if request.method != wanted:
                raise NotAsked(f"Not allowed to {request.method} on {request.path}.", status=405)
            if wanted == "GET":
                return address, None, model_list()
            call = self._counted(parse_call(request.headers, request.body), address)
            try:
                return address, call, reply_to(call, address)
            except NotAsked as error:
                return address, call, _refusal(error)
        except NotAsked as error:
            return address, None, _refusal(error)

    def _counted(self, call: Call, address: Address) -> Call:
        number = self._counts.next("task", address.fault, call.task)
        again = bool(call.attempt) and self._counts.next("attempt", address.fault, call.task, call.attempt) > 1
        return replace(call, number=number, asked_again=call.asked_again or again)

    def _paced(self, connection: Connection, address: Address, call: Call | None, request_id: str) -> Exchange:
        if call is None:
            return _exchange(connection, request_id)
        low, high = address.delay or self._delay
        # By the call and not by its turn: the same run has the same times, in whatever order its calls arrive.
        seconds = seeded(f"{self._seed}:{call.task}:{call.number}").uniform(low, high)
        return Exchange(connection, call, request_id, seconds, address.chunks or DEFAULT_CHUNKS)


def _exchange(connection: Connection, request_id: str = "req_none") -> Exchange:
    return Exchange(connection, Call("", (), ""), request_id, 0.0, DEFAULT_CHUNKS)


def _refusal(error: NotAsked) -> Response:
    return json_response(error.status, error_body(str(error), "invalid_request_error", None, error.param))


def model_list() -> Response:
    """The answer to GET /v1/models."""
    data = [{"id": name, "object": "model", "created": 1767225600, "owned_by": "redrive-simulated"} for name in MODELS]
    return Response(200, json.dumps({"object": "list", "data": data}).encode())


async def serve(
    provider: SimulatedProvider, ready: Callable[[Callable[[], object]], None], listener: socket.socket | None = None
) -> None:
    """Runs ``provider`` until SIGTERM or SIGINT. Main thread only.

    ``ready`` is called once it serves, with a function that stops it from any thread.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await provider.start(listener)
    ready(lambda: loop.call_soon_threadsafe(stop.set))
    await stop.wait()
    await provider.stop()


def raise_file_limit() -> None:
    """As many open connections as the system allows this process."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition("-")
    return int(low) / 1000, int(high or low) / 1000


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tasks.demo.provider", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--log", type=Path, help="append-only log, one JSON object a line")
    parser.add_argument("--delay", type=_range, default=DEFAULT_DELAY, help="milliseconds, for example 500-3000")
    parser.add_argument("--seed", type=int, default=0, help="fixes the times that are drawn")
    options = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    raise_file_limit()
    provider = SimulatedProvider(
        host=options.host, port=options.port, log_path=options.log, delay=options.delay, seed=options.seed
    )

    def ready(_stop: Callable[[], object]) -> None:
        sys.stdout.write(f"listening: {provider.port}\n")
        sys.stdout.flush()

    asyncio.run(serve(provider, ready))


if __name__ == "__main__":
    main()
