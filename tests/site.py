"""The web process as in production (uvicorn, ASGI), in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def serve(database_url: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Its address and process; it is told to stop at the end, where it still runs."""
    port = free_port()
    environment = {
        **os.environ,
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "config.settings_test",
        "ALLOWED_HOSTS": "127.0.0.1",
    }
    arguments = ["config.asgi:application", "--log-level", "warning", "--port", str(port)]
    command = [sys.executable, "-m", "uvicorn", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        _wait_for(f"http://127.0.0.1:{port}/healthz", process)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=10)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"uvicorn ended with {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own server
                return
        except HTTPError:
            return
        except (URLError, ConnectionError):
            time.sleep(0.05)
    raise RuntimeError(f"{url} did not answer within 30 s")
