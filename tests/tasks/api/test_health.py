"""/healthz and /readyz; and every door while the database is away."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tasks.embedded.server import EmbeddedServer
from tests.site import serve


@pytest.mark.django_db
def test_a_healthy_process(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ok"}


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_by_address(client: Client, path: str, settings: Any) -> None:
    """A kubelet asks by the pod's address, which no list of hosts can know."""
    settings.ALLOWED_HOSTS = ["console.example.com"]
    assert client.get(path, headers={"host": "10.1.2.3:8000"}).status_code == 200


def ask(url: str, key: str = "") -> tuple[int, Message, str]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key or 'redrive_x'}"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=20) as response:  # noqa: S310
            return response.status, response.headers, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def test_while_the_database_is_away(data_dir: Path) -> None:
    """Started before the database, then with one that lacks the migrations, then after it is gone again."""
    server = EmbeddedServer(data_dir)
    server.start()
    dsn = server.dsn("redrive")
    with serve(dsn) as (url, _process):
        status, headers, body = ask(f"{url}/readyz")
        assert status == 503 and "migrations are pending" in body and headers["Retry-After"] == "5"
        server.stop("immediate")
        assert ask(f"{url}/healthz")[0] == 200
        status, headers, body = ask(f"{url}/readyz")
        assert (status, json.loads(body)) == (503, {"status": "the database cannot be reached"})
        some = "00000000-0000-7000-8000-000000000000"
        for path in ("/api/v1/dead-letters", f"/api/v1/tasks/{some}", f"/api/v1/tasks/{some}/events"):
            status, headers, body = ask(url + path)
            assert status == 503, (path, body)
            assert headers["Retry-After"] == "5"
            assert json.loads(body)["detail"].startswith("The database cannot be reached")
        server.start()
        # However long it was away, no request waits for a connection in vain any more.
        assert "migrations are pending" in ask(f"{url}/readyz")[2]
