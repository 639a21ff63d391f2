"""On the wire, against uvicorn: what no test client sends."""

from __future__ import annotations

import socket
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

pytestmark = pytest.mark.django_db(transaction=True)


def send(site_url: str, raw: bytes) -> tuple[int, str]:
    """Send octets as they are; status and text of the answer."""
    where = urlsplit(site_url)
    with socket.create_connection((where.hostname, where.port), timeout=20) as wire:  # type: ignore[arg-type]
        wire.sendall(raw)
        answer = b""
        while chunk := wire.recv(65_536):
            answer += chunk
    return int(answer.split(b" ", 2)[1]), answer.decode("utf-8", "replace")


def request(line: str, *headers: str, body: bytes = b"") -> bytes:
    """A request that asks to close the connection afterwards."""
    head = "\r\n".join([f"{line} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *headers])
    return head.encode("latin-1") + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /kinds/%00/pause/", 404),
        ("GET /login/?next=%00", 400),
        ("GET /%ED%A0%80/", 404),
        ("GET /login/?next=%ED%A0%80", 200),
        ("GET /%FF%FE/", 404),
        ("GET /static/%00", 404),
        ("GET /static/..%2f..%2fsettings.py", 404),
        ("HEAD /login/", 200),
        ("OPTIONS /login/", 200),
        ("GET /tasks/" + "9" * 9_000, 404),
    ],
)
def test_an_address(line: str, status: int, site_url: str) -> None:
    assert send(site_url, request(line))[0] == status


@pytest.mark.parametrize(
    "cookie", [r'sessionid="\000\000\000\000\000\000\000\000"', "csrftoken=" + "\xff" * 32, "a=" + "x" * 8_192]
)
def test_a_broken_cookie(cookie: str, site_url: str) -> None:
    status, answer = send(site_url, request("HEAD /tasks/", f"Cookie: {cookie}"))
    assert status == 302
    assert "location: /login/" in answer.lower()


@pytest.mark.parametrize(
    "sort",
    [
        "text/plain; charset*=bogus''x",
        "text/plain; charset*=utf-8''%00",
        "text/plain; charset=utf-7",
        "a/b; charset=\xff",
    ],
)
@pytest.mark.parametrize("line", ["GET /login/", "POST /login/"])
def test_a_content_type_that_cannot_be_followed(line: str, sort: str, site_url: str) -> None:
    """Django fails on the first two before it has a request, so no page of its own could answer."""
    status, answer = send(site_url, request(line, f"Content-Type: text/plain; {sort}", "Content-Length: 0"))
    assert status == 400
    assert "not sent as UTF-8" in answer


def test_a_body_that_announces_too_much_is_not_waited_for(site_url: str) -> None:
    """The answer comes before a single octet of it was sent."""
    status, answer = send(site_url, request("POST /login/", f"Content-Length: {10**12}"))
    assert status == 413
    assert "larger than the 4 MB" in answer


def test_a_body_that_goes_on_is_cut_off(site_url: str) -> None:
    """However it is sent: this one says nothing of its length."""
    where = urlsplit(site_url)
    wire = HTTPConnection(where.hostname, where.port, timeout=20)  # type: ignore[arg-type]
    sent = 0

    def endless():  # type: ignore[no-untyped-def]
        nonlocal sent
        while sent < 200 * 1024 * 1024:
            sent += 65_536
            yield b"x" * 65_536

    try:
        wire.request("POST", "/login/", body=endless(), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    except (BrokenPipeError, ConnectionResetError):
        assert sent < 200 * 1024 * 1024
        return
    finally:
        wire.close()
    raise AssertionError("200 MB were taken")


def test_what_is_right_passes(site_url: str) -> None:
    status, answer = send(site_url, request("GET /login/", "Content-Type: text/plain; charset=UTF-8"))
    assert status == 200
    assert "no-store" in answer
