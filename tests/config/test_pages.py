"""What every page has: the policy, the doors, the error pages."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from tasks.models import OperatorAction
from tests.factories import make_user

pytestmark = pytest.mark.django_db

PAGES = ["tasks", "kinds", "workers", "audit", "help", "profile", "dead-letters"]


@pytest.mark.parametrize("name", PAGES)
def test_page_asks_for_a_login(client: Client, name: str) -> None:
    """Nobody in particular sees nothing."""
    response = client.get(reverse(name))
    assert (response.status_code, response.headers["Location"].split("?")[0]) == (302, "/login/")


@pytest.mark.parametrize("name", PAGES)
def test_page_refuses_who_is_in_no_group(client: Client, name: str) -> None:
    """With a page that says what to ask for."""
    client.force_login(make_user("nobody", None))
    response = client.get(reverse(name))
    assert response.status_code == 403
    assert "You may not see this" in response.content.decode()


@pytest.mark.parametrize("name", PAGES)
def test_page_is_shown_to_who_may_look(client: Client, name: str) -> None:
    """Under a strict policy, and kept by no cache."""
    client.force_login(make_user("vera", "view"))
    response = client.get(reverse(name))
    assert response.status_code == 200
    policy = response.headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.parametrize("name", ["tasks", "kinds", "workers", "audit", "help"])
def test_page_refuses_post(client: Client, name: str) -> None:
    """Reading is GET."""
    client.force_login(make_user())
    assert client.post(reverse(name)).status_code == 405


@pytest.mark.parametrize("name", PAGES)
def test_page_answers_head_as_get_without_a_body(client: Client, name: str) -> None:
    """What link checkers and load balancers ask."""
    client.force_login(make_user("vera", "view"))
    response = client.head(reverse(name))
    assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize("name", [*PAGES, "login", "cancel-tasks"])
def test_options_changes_nothing(client: Client, name: str) -> None:
    """An answer, and no more."""
    client.force_login(make_user())
    assert client.options(reverse(name)).status_code in (200, 302, 405)
    assert not OperatorAction.objects.exists()


UNCACHED = ["/admin/", "/admin/password_change/", "/admin/jsi18n/", "/admin/tasks/kind/", "/nothing/", "/", "/?q=%00"]


@pytest.mark.parametrize("path", [*UNCACHED, *(reverse(name) for name in (*PAGES, "login"))])
def test_no_page_is_kept_by_a_cache(client: Client, path: str) -> None:
    """Nor one of Django's own, nor one that refuses: the next person at the machine presses Back."""
    client.force_login(User.objects.create_superuser("root"))
    assert "no-store" in client.get(path).headers["Cache-Control"]


def test_static_files_are_kept(client: Client) -> None:
    """They are the same for everybody."""
    response = client.get("/static/css/app.css")
    assert response.status_code == 200
    assert "public" in response.headers["Cache-Control"] and "no-store" not in response.headers["Cache-Control"]


def test_the_start_leads_to_the_tasks(client: Client) -> None:
    """Until there is an overview."""
    client.force_login(make_user())
    assert client.get("/").headers["Location"] == "/tasks/"


def test_an_unknown_address_says_so(client: Client) -> None:
    """With a way on."""
    client.force_login(make_user())
    response = client.get("/nothing/")
    assert response.status_code == 404
    assert "Nothing is here" in response.content.decode()


def test_a_stale_form_says_so() -> None:
    """A missing token: nothing was changed, and how to go on."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user())
    response = client.post("/logout/")
    assert response.status_code == 403
    assert "This form has expired" in response.content.decode()


def test_the_failure_page_needs_nothing() -> None:
    """Neither a request nor a database: it is shown when those fail."""
    assert "No task is lost by it" in render_to_string("500.html")


def test_configuration_is_linked_for_who_may(client: Client) -> None:
    """And for nobody else."""
    client.force_login(make_user("carl", "configure"))
    assert 'href="/admin/"' in client.get("/tasks/").content.decode()
    client.force_login(make_user("ana", "operate"))
    assert 'href="/admin/"' not in client.get("/tasks/").content.decode()
