"""What every verb must refuse, for any verb: a table that each verb's test file runs."""

from __future__ import annotations

from typing import Any

from django.test import Client

from tasks.models import OperatorAction
from tests.factories import make_user


def refuses_get(url: str) -> None:
    """405 for GET, even for who may act."""
    client = signed_in("ana", "operate")
    assert client.get(url).status_code == 405


def refuses_the_wrong_people(url: str, **data: Any) -> None:
    """Nobody in particular is led to the login; who may only look, or has no group, gets a 403; no row is written."""
    anonymous = Client().post(url, data)
    assert (anonymous.status_code, anonymous.headers["Location"].split("?")[0]) == (302, "/login/")
    assert signed_in("vera", "view").post(url, data).status_code == 403
    assert signed_in("nobody", None).post(url, data).status_code == 403
    assert not OperatorAction.objects.exists()


def refuses_a_missing_token(url: str, **data: Any) -> None:
    """A form of another site."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user("mallory", "operate"))
    assert client.post(url, data).status_code == 403


def signed_in(name: str = "ana", group: str | None = "operate") -> Client:
    """A client of a person in ``group``."""
    client = Client()
    client.force_login(make_user(name, group))
    return client


HTMX = {"HX-Request": "true"}
