"""Sign in and out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from pytest_django.fixtures import Settings

from tasks.models import OperatorAction, SignInTries
from tasks.views.sign_in_limit import MOST, WINDOW
from tests.factories import PASSWORD, make_user
from tests.tasks.views.doors import signed_in

pytestmark = pytest.mark.django_db
WRONG = "no horse no battery"


def test_in_and_on_to_where_one_wanted() -> None:
    """With an audit row."""
    make_user()
    data = {"username": "ana", "password": PASSWORD, "next": "/kinds/"}
    response = Client().post("/login/", data)
    assert (response.status_code, response.headers["Location"]) == (302, "/kinds/")
    assert list(OperatorAction.objects.values_list("username", "action")) == [("ana", "signed_in")]


@pytest.mark.parametrize("target", ["https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)"])
def test_never_on_to_elsewhere(target: str) -> None:
    """An edited link."""
    make_user()
    response = Client().post("/login/", {"username": "ana", "password": PASSWORD, "next": target})
    assert response.headers["Location"] == "/"


def test_a_wrong_password_says_so_and_keeps_the_name() -> None:
    """And lets nobody in."""
    make_user()
    client = Client()
    page = client.post("/login/", {"username": "ana", "password": "wrong"}).content.decode()
    assert "Please enter a correct username and password" in page and 'value="ana"' in page
    assert client.get("/tasks/").status_code == 302
    assert not OperatorAction.objects.exists()


def test_signed_in_already_one_is_led_on() -> None:
    """No second login."""
    assert signed_in().get("/login/").headers["Location"] == "/"


# --- too many tries --------------------------------------------------------------------------------------------------
def try_in(client: Client, password: str = WRONG, name: str = "ana", **extra: Any) -> HttpResponse:
    """One try."""
    return client.post("/login/", {"username": name, "password": password}, **extra)  # type: ignore[return-value]


def fail(times: int, **extra: Any) -> None:
    """So many wrong passwords, each from a browser of its own."""
    for _n in range(times):
        assert try_in(Client(), **extra).status_code == 200


def test_after_ten_failures_even_the_right_password_waits() -> None:
    """With a sentence, and in the words of HTTP; what was typed as the name stays."""
    make_user()
    fail(MOST)
    response = try_in(Client(), PASSWORD)
    assert response.status_code == 429
    assert 1 <= int(response.headers["Retry-After"]) <= WINDOW
    page = response.content.decode()
    assert "Too many tries with this name. Wait " in page and 'value="ana"' in page
    assert not OperatorAction.objects.exists()
    assert Client().post("/admin/login/?next=/admin/").headers["Location"].startswith("/login/")


@pytest.mark.parametrize("name", ["ANA", " ana ", "ａｎａ"])
def test_the_same_name_written_otherwise_is_the_same(name: str) -> None:
    """Or ten spellings were a hundred tries."""
    fail(MOST)
    assert try_in(Client(), name=name).status_code == 429


@pytest.mark.parametrize("extra", [{"name": "bea"}, {"REMOTE_ADDR": "192.0.2.7"}, {"REMOTE_ADDR": "2001:db8::1"}])
def test_another_name_or_address_is_not_refused(extra: dict[str, str]) -> None:
    """Nobody locks out everybody."""
    fail(MOST)
    assert try_in(Client(), **extra).status_code == 200


def test_an_ipv6_network_is_one_address() -> None:
    """Each machine has as many as it likes."""
    fail(MOST, REMOTE_ADDR="2001:db8:1:2::1")
    assert try_in(Client(), REMOTE_ADDR="2001:db8:1:2:ffff::9").status_code == 429
    assert try_in(Client(), REMOTE_ADDR="2001:db8:1:3::1").status_code == 200


def test_what_a_stranger_says_of_its_address_counts_behind_a_proxy_alone(settings: Settings) -> None:
    """And there only the proxy's own word, the last."""
    fail(MOST, HTTP_X_FORWARDED_FOR="192.0.2.1")
    assert try_in(Client(), HTTP_X_FORWARDED_FOR="192.0.2.2").status_code == 429
    settings.TRUST_PROXY = True
    assert try_in(Client(), HTTP_X_FORWARDED_FOR="192.0.2.2").status_code == 200
    fail(MOST - 1, HTTP_X_FORWARDED_FOR="203.0.113.5, 192.0.2.2")
    assert try_in(Client(), HTTP_X_FORWARDED_FOR="203.0.113.6, 192.0.2.2").status_code == 429


def test_the_right_password_forgets_the_wrong_ones() -> None:
    """Nine slips and a sign-in, again and again."""
    make_user()
    for _round in range(3):
        fail(MOST - 1)
        assert try_in(Client(), PASSWORD).status_code == 302
    assert not SignInTries.objects.exists()


def test_the_wait_ends_though_one_goes_on_trying() -> None:
    """What is refused does not put it off; and rows whose time is over are forgotten."""
    make_user()
    fail(MOST)
    began = SignInTries.objects.get().since
    for _n in range(5):
        assert try_in(Client()).status_code == 429
    assert SignInTries.objects.get().since == began
    SignInTries.objects.update(since=began - timedelta(seconds=WINDOW))
    fail(1, name="bea")
    assert SignInTries.objects.count() == 1
    assert try_in(Client(), PASSWORD).status_code == 302


def test_the_row_keeps_no_name() -> None:
    """What is typed there is sometimes the password."""
    fail(1, name="hunter2")
    assert "hunter2" not in SignInTries.objects.get().key


@pytest.mark.django_db(transaction=True)
def test_tries_side_by_side_are_counted_one_by_one() -> None:
    """Over several web processes, each with a connection of its own."""
    make_user()

    def once(_n: int) -> int:
        try:
            return try_in(Client()).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(once, range(3 * MOST)))
    assert (answers.count(200), answers.count(429)) == (MOST, 2 * MOST)


def test_out() -> None:
    """POST only, with an audit row."""
    client = signed_in()
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").headers["Location"] == "/login/"
    assert client.get("/tasks/").status_code == 302
    assert OperatorAction.objects.get().action == "signed_out"


def test_the_login_page_needs_no_login_and_loads_nothing_from_elsewhere() -> None:
    """Under the same policy."""
    response = Client().get("/login/")
    assert response.status_code == 200
    assert (
        "http://" not in response.content.decode()
        and "script-src 'self'" in response.headers["Content-Security-Policy"]
    )
