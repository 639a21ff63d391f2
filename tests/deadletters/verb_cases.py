"""The cases that every verb on a letter has alike."""

from __future__ import annotations

import re
from uuid import UUID

from django.test import Client
from django.urls import reverse

from tasks.models import OperatorAction
from tests.deadletters import people


def signed_in(user=None) -> Client:  # type: ignore[no-untyped-def]
    """A client of an operator, or of ``user``, that checks the token of forms."""
    client = Client()
    client.force_login(user or people.operator())
    return client


def refuses_get(name: str, *args: UUID) -> None:
    """A verb is never a link."""
    response = signed_in().get(reverse(name, args=args))
    assert response.status_code == 405
    assert response["Allow"] == "POST"


def refuses_viewers(name: str, *args: UUID) -> None:
    """Who may only look gets 403, and nothing is written."""
    response = signed_in(people.viewer()).post(reverse(name, args=args), {"reason": "x", "id": [str(a) for a in args]})
    assert response.status_code == 403
    assert not OperatorAction.objects.filter(username="vera").exists()


def refuses_strangers(name: str, *args: UUID) -> None:
    """Who is not signed in is led to the sign-in."""
    response = Client().post(reverse(name, args=args))
    assert response.status_code == 302
    assert response["Location"].startswith("/login/")


def refuses_forged_forms(name: str, *args: UUID) -> None:
    """A form without the token is refused."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.operator())
    assert client.post(reverse(name, args=args), {"reason": "x"}).status_code == 403


def unknown_is_404(name: str) -> None:
    """An id that no letter has."""
    response = signed_in().post(reverse(name, args=[UUID(int=7)]), {"reason": "x"})
    assert response.status_code == 404


def messages(client: Client, path: str) -> str:
    """What the page says after a redirect: the text of its messages."""
    page = client.get(path).content.decode()
    toasts = re.search(r'id="toasts".*?</div>\s*(?:<template|<nav|<form|<div id=|<div class="row)', page, re.DOTALL)
    return " ".join(re.findall(r'<div class="toast [^"]*"><p>(.*?)</p>', toasts[0] if toasts else page))
