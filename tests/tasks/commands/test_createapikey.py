"""``manage.py createapikey``: a key once, and never again."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from tasks.api.auth import find_key
from tasks.errors import mask_secrets
from tasks.models import ApiKey, OperatorAction

pytestmark = pytest.mark.django_db


def made(name: str = "shop", scope: str = "submit") -> str:
    out = io.StringIO()
    call_command("createapikey", name, scope=scope, stdout=out, stderr=io.StringIO())
    return out.getvalue().strip()


def test_the_key_opens_and_is_not_stored() -> None:
    key = made(scope="operate")
    found = find_key(key)
    assert found and (found.name, found.scope) == ("shop", "operate")
    assert key not in str(list(ApiKey.objects.values()))
    action = OperatorAction.objects.get(action="create_api_key")
    assert action.username.endswith("(createapikey)") and key not in str(action.data)


def test_a_name_is_taken_once_until_its_key_is_revoked() -> None:
    made()
    with pytest.raises(CommandError, match="There is a key “shop” already"):
        made()
    ApiKey.objects.update(revoked_at="2026-01-01T00:00:00Z")
    assert find_key(made())


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\x00b", "a\nb"])
def test_a_name_that_cannot_be_taken(name: str) -> None:
    with pytest.raises(CommandError, match="printable text of 1 to 100 characters"):
        made(name)


def test_a_wrong_scope() -> None:
    with pytest.raises(CommandError, match="scope"):
        call_command("createapikey", "shop", "--scope", "admin")


def test_a_key_is_masked_wherever_it_turns_up() -> None:
    key = made()
    assert key not in mask_secrets(f"the caller sent {key} to us")
