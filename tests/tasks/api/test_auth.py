"""Every door of the API: no key, a wrong one, a revoked one, one whose scope does not reach."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from tasks.models import ApiKey
from tests.tasks.api.keys import Caller, caller, make_key

pytestmark = pytest.mark.django_db
ANY = UUID(int=7)
TASK = f"/tasks/{ANY}"
SUBMIT = [("post", "/tasks"), ("get", TASK), ("post", f"{TASK}/cancel"), ("get", f"{TASK}/events")]
OPERATE = [("get", "/dead-letters"), ("post", f"/dead-letters/{ANY}/reprocess")]
DOORS = pytest.mark.parametrize(("method", "path"), [*SUBMIT, *OPERATE])


def told(response: Any) -> tuple[int, str]:
    assert response["Content-Type"] == "application/problem+json", response.content
    body = response.json()
    assert body["status"] == response.status_code and body["type"] == "about:blank" and body["title"]
    return response.status_code, body["detail"]


@DOORS
@pytest.mark.parametrize("key", [None, "", "redrive_wrong", "\u00e9\u00e9", "a b c", "x" * 5_000])
def test_without_a_good_key(method: str, path: str, key: str | None) -> None:
    response = getattr(Caller(key), method)(path)
    status, detail = told(response)
    assert status == 401 and "a key that was made by 'manage.py createapikey'" in detail
    assert response["WWW-Authenticate"] == 'Bearer realm="redrive"'


@DOORS
def test_a_revoked_key(method: str, path: str) -> None:
    program = caller("operate")
    ApiKey.objects.update(revoked_at=timezone.now())
    assert told(getattr(program, method)(path))[0] == 401


@pytest.mark.parametrize(("method", "path"), OPERATE)
def test_a_key_to_submit_does_not_operate(method: str, path: str) -> None:
    status, detail = told(getattr(caller("submit"), method)(path))
    assert (status, detail) == (403, "The key “shop” has the scope submit; this needs operate.")


@pytest.mark.parametrize(("method", "path"), SUBMIT[1:])
@pytest.mark.parametrize("scope", ["submit", "operate"])
def test_both_scopes_submit_and_watch(method: str, path: str, scope: str) -> None:
    """404 and 501 come after the key: the door was open."""
    assert getattr(caller(scope), method)(path).status_code in (404, 501)


def test_a_signed_in_person_is_no_program(client: Any) -> None:
    """A cookie opens nothing here, so that no page of a stranger can act in a person's name."""
    from tests.factories import make_user

    client.force_login(make_user("ana", "configure"))
    assert client.post("/api/v1/tasks", "{}", content_type="application/json").status_code == 401


def test_a_key_is_not_stored() -> None:
    key = make_key()
    row = ApiKey.objects.values().get()
    assert key not in str(row) and row["start"] == key[:14]


@pytest.mark.parametrize("path", ["/tasks", f"/tasks/{ANY}/cancel"])
def test_another_method_is_a_problem(path: str) -> None:
    response = caller().get(path)
    assert told(response)[0] == 405 and response["Allow"] == "POST"


@pytest.mark.parametrize("path", ["/nothing", "/tasks/not-an-id", "/"])
def test_an_unknown_address_is_a_problem(path: str) -> None:
    assert told(caller().get(path))[0] == 404
