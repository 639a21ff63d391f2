"""The server: the protocol, the pace, the witness, hundreds at once, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import openai
import pytest

from tasks.demo.provider import CallCounts
from tasks.demo.witness import Witness, read_log
from tests.tasks.demo.asking import ask, new_task, until
from tests.tasks.demo.conftest import ROOT, ProviderProcess


def test_streamed_and_whole_answers_say_the_same(provider: ProviderProcess) -> None:
    streamed, whole = (ask(provider.url(), "same", stream=stream) for stream in (True, False))
    assert streamed.text == whole.text
    assert len(streamed.text) > 40
    assert streamed.chunks > 5
    assert streamed.finish == whole.finish == "stop"
    assert streamed.usage == whole.usage
    assert streamed.usage is not None and streamed.usage.total_tokens > streamed.usage.completion_tokens > 0


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_answers_are_marked_as_simulated(provider: ProviderProcess, stream: bool) -> None:
    answer = ask(provider.url(), new_task(), stream=stream)
    assert (answer.model, answer.fingerprint) == ("simulated-small", "fp_simulated")
    with openai.OpenAI(base_url=provider.url(), api_key="k", max_retries=0) as client:
        messages: Any = [{"role": "user", "content": "Hello"}]
        raw = client.chat.completions.with_raw_response.create(model="gpt-x", messages=messages)
        assert raw.parse().model == "simulated-gpt-x"
        assert raw.headers["x-redrive-simulated"] == "1"


def test_usage_is_streamed_only_to_who_asks_for_it(provider: ProviderProcess) -> None:
    with openai.OpenAI(base_url=provider.url(), api_key="k", max_retries=0) as client:
        messages: Any = [{"role": "user", "content": "Hello"}]
        chunks = list(client.chat.completions.create(model="m", messages=messages, stream=True))
    assert all(chunk.usage is None for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_models_are_listed(provider: ProviderProcess) -> None:
    with openai.OpenAI(base_url=provider.url("fault/error_500"), api_key="k", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["simulated-small", "simulated-large"]


@pytest.mark.parametrize(
    ("target", "method", "body", "status", "words"),
    [
        ("/v1/chat/completions", "POST", b"{", 400, "could not parse the JSON body"),
        ("/v1/chat/completions", "POST", b"[]", 400, "not a JSON object"),
        ("/v1/chat/completions", "POST", b"{}", 400, "Missing required parameter: 'messages'"),
        ("/v1/chat/completions", "POST", b'{"messages":[1]}', 400, "Invalid type for 'messages'"),
        ("/v1/chat/completions", "GET", b"", 405, "Not allowed to GET"),
        ("/v1/embeddings", "POST", b"{}", 404, "Unknown request URL"),
        ("/chat/completions", "POST", b"{}", 404, "No such address"),
        ("/fault/v1/models", "GET", b"", 404, "The option 'fault' has no value."),
        ("/delay/soon/v1/models", "GET", b"", 404, "The option 'delay' cannot be 'soon'."),
        ("/weather/v1/v1/models", "GET", b"", 404, "has no value"),
        ("/weather/fine/v1/models", "GET", b"", 404, "No such option: 'weather'."),
    ],
)
def test_what_is_not_understood_is_refused_with_a_sentence(
    provider: ProviderProcess, target: str, method: str, body: bytes, status: int, words: str
) -> None:
    head, answer = raw_request(provider, f"{method} {target} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n", body)
    assert head.split()[1] == str(status)
    assert words in json.loads(answer)["error"]["message"]


def raw_request(provider: ProviderProcess, head: str, body: bytes = b"") -> tuple[str, str]:
    """Head and body of the answer to bytes sent as they are, on a connection that is closed for writing after them."""
    with socket.create_connection(("127.0.0.1", provider.port), timeout=5) as connection:
        connection.sendall(head.encode() + body)
        file = connection.makefile("rb")
        lines = [file.readline().decode()]
        while line := file.readline().strip():
            lines.append(line.decode())
        length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length"))
        return lines[0], file.read(length).decode()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /v1/models\r\n\r\n", 400),
        ("GET /v1/models HTTP/1.1\r\nno colon\r\n\r\n", 400),
        ("POST /v1/models HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400),
        ("POST /v1/models HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST /v1/models HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        ("GET /v1/models HTTP/1.1\r\nX: " + "x" * 70_000, 431),
    ],
    ids=["line", "header", "length", "negative", "body", "head"],
)
def test_bytes_that_are_no_request_get_an_answer(provider: ProviderProcess, head: str, status: int) -> None:
    line, body = raw_request(provider, head)
    assert line.split()[1] == str(status)
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


def test_a_chunked_body_is_read_and_the_connection_used_again(provider: ProviderProcess) -> None:
    task = new_task()
    body = json.dumps({"messages": [{"role": "user", "content": f"[task:{task}]"}]}).encode()
    chunks = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:])) + b"0\r\nT: 1\r\n\r\n"
    head = b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", provider.port), timeout=5) as connection:
        # Both at once: the second request waits in the buffer while the first is answered.
        connection.sendall(head + chunks + b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n")
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    assert received.count(b"HTTP/1.1 200 OK") == 2
    assert b"simulated-large" in received
    assert provider.events(task)[1]["good"] is True


def test_an_answer_takes_as_long_as_its_address_says(provider: ProviderProcess) -> None:
    for stream in (True, False):
        start = time.monotonic()
        ask(provider.url("delay/400"), new_task(), stream=stream)
        assert 0.4 <= time.monotonic() - start < 3
    assert ask(provider.url("chunks/3"), new_task()).chunks <= 3 + 3  # and the role, the finish reason, the usage


def test_times_are_drawn_by_the_seed_and_the_call(tmp_path: Path) -> None:
    def times(log: str, seed: str, tasks: str) -> dict[tuple[str, int], float]:
        other = ProviderProcess(tmp_path / log, "--delay", "0-200", "--seed", seed)
        for task in tasks:
            ask(other.url(), task, stream=False)
        assert other.end() == 0
        events = [event for event in read_log(other.log) if event["event"] == "request"]
        return {(event["task"], event["call"]): event["seconds"] for event in events}

    first = times("first", "1", "aba")
    assert first == times("again", "1", "baa")  # in another order
    assert first != times("other", "2", "aba")
    assert len(set(first.values())) == 3
    assert all(0 <= seconds <= 0.2 for seconds in first.values())


def test_the_witness_knows_who_asked(provider: ProviderProcess) -> None:
    task = new_task()
    marks = {"x-redrive-task": task, "x-redrive-cycle": "2", "x-redrive-attempt": "4711"}
    ask(provider.url(), "another", headers=marks)
    request, end = provider.events(task)
    assert (request["event"], end["event"]) == ("request", "answered")
    assert request["id"] == end["id"]
    for event in (request, end):
        assert (event["task"], event["cycle"], event["attempt"], event["call"]) == (task, 2, "4711", 1)
    assert (end["status"], end["good"]) == (200, True)
    assert end["monotonic_ns"] > request["monotonic_ns"]
    assert abs(end["wall_ns"] - time.time_ns()) < 60e9


def test_without_a_word_a_task_is_known_by_its_messages(provider: ProviderProcess) -> None:
    with openai.OpenAI(base_url=provider.url("fault/rate_limit_plain"), api_key="k", max_retries=0) as client:
        messages: Any = [{"role": "user", "content": f"No mark {new_task()}"}]
        for _ in range(2):
            with pytest.raises(openai.RateLimitError):
                client.chat.completions.create(model="m", messages=messages)
        assert client.chat.completions.create(model="m", messages=messages).choices[0].finish_reason == "stop"


def test_a_client_that_leaves_is_noted_at_once(provider: ProviderProcess) -> None:
    task = new_task()
    with openai.OpenAI(base_url=provider.url("delay/20000"), api_key="k", max_retries=0) as client:
        messages: Any = [{"role": "user", "content": f"[task:{task}]"}]
        with pytest.raises(openai.APITimeoutError):
            client.chat.completions.create(model="m", messages=messages, timeout=0.2)
    request, end = provider.events(task)
    assert (end["event"], end["good"], end["bytes"]) == ("closed", False, 0)
    assert end["monotonic_ns"] - request["monotonic_ns"] < 3e9


def test_a_client_that_leaves_a_stream_is_noted_at_once(provider: ProviderProcess) -> None:
    task = new_task()
    with openai.OpenAI(base_url=provider.url("delay/3000"), api_key="k", max_retries=0) as client:
        messages: Any = [{"role": "user", "content": f"[task:{task}]"}]
        with client.chat.completions.create(model="m", messages=messages, stream=True) as stream:
            next(iter(stream))
    _request, end = provider.events(task)
    assert end["event"] == "closed"
    assert end["bytes"] > 100


def test_a_killed_client_is_noted(provider: ProviderProcess) -> None:
    task = new_task()
    code = (
        "import sys, openai\n"
        "client = openai.OpenAI(base_url=sys.argv[1], api_key='k', max_retries=0)\n"
        "client.chat.completions.create(model='m', messages=[{'role': 'user', 'content': f'[task:{sys.argv[2]}]'}])\n"
    )
    client = subprocess.Popen([sys.executable, "-c", code, provider.url("delay/30000"), task])
    until(lambda: [event for event in read_log(provider.log) if event.get("task") == task], 20)
    client.kill()
    client.wait(10)
    assert provider.events(task)[1]["event"] == "closed"


def test_three_hundred_at_once_all_take_their_own_time(provider: ProviderProcess) -> None:
    async def one(client: openai.AsyncOpenAI, number: int, batch: str) -> str | None:
        messages: Any = [{"role": "user", "content": f"Question {number} [task:{batch}-{number}]"}]
        answer = await client.chat.completions.create(model="m", messages=messages)
        return answer.choices[0].finish_reason

    async def every(batch: str) -> list[str | None]:
        url = provider.url("delay/2000-2500")
        # The client's own limit of connections is 1,000.
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0, timeout=30) as client:
            return await asyncio.gather(*(one(client, number, batch) for number in range(300)))

    batch = new_task()
    assert asyncio.run(every(batch)) == ["stop"] * 300
    events = [event for event in read_log(provider.log) if str(event.get("task", "")).startswith(batch)]
    changes = sorted((event["monotonic_ns"], 1 if event["event"] == "request" else -1) for event in events)
    running = most = 0
    for _at, change in changes:
        running += change
        most = max(most, running)
    assert running == 0
    assert most > 200  # They truly ran side by side; the client takes a while to send them all.
    starts = {event["task"]: event["monotonic_ns"] for event in events if event["event"] == "request"}
    times = [(e["monotonic_ns"] - starts[e["task"]]) / 1e9 for e in events if e["event"] == "answered"]
    assert len(times) == 300
    assert min(times) >= 2.0
    assert sorted(times)[150] < 4.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_and_breaks_off_what_runs(tmp_path: Path, number: int) -> None:
    other, task = ProviderProcess(tmp_path / "log.jsonl"), new_task()
    body = json.dumps({"messages": [{"role": "user", "content": f"[task:{task}]"}]}).encode()
    with socket.create_connection(("127.0.0.1", other.port), timeout=10) as connection:
        head = f"POST /delay/30000/v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        until(lambda: read_log(other.log))
        start = time.monotonic()
        assert other.end(number) == 0
        assert time.monotonic() - start < 3
        with suppress(ConnectionResetError):  # As good an end.
            assert connection.recv(1) == b""
    request, end = read_log(other.log)
    assert (request["event"], end["event"], end["stopped"]) == ("request", "closed", True)


def test_a_taken_port_is_an_error(provider: ProviderProcess) -> None:
    command = [sys.executable, "-m", "tasks.demo.provider", "--port", str(provider.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=ROOT, check=False)
    assert done.returncode != 0
    assert "address already in use" in done.stderr


def test_several_writers_share_a_log_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    children = []
    for name in range(4):
        if (child := os.fork()) == 0:
            witness = Witness(path)
            for number in range(500):
                witness.note("request", writer=name, number=number, text="\ud800" + "x" * (number % 300))
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    events = read_log(path)
    for name in range(4):
        assert [event["number"] for event in events if event["writer"] == name] == list(range(500))


def test_counts_forget_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.demo.provider.REMEMBERED", 2)
    counts = CallCounts()
    assert [counts.next(name) for name in ("a", "b", "a", "c", "a", "b")] == [1, 1, 2, 1, 3, 1]
