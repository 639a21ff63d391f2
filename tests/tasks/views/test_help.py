"""The help pages name what exists."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.core.management import get_commands
from django.urls import Resolver404, resolve

from tasks.states import Outcome, Reason, Status
from tasks.views.help import PAGES
from tests.tasks.views.doors import signed_in

pytestmark = pytest.mark.django_db


def read(name: str = "") -> str:
    """The page."""
    response = signed_in("vera", "view").get(f"/help/{name}")
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("name", PAGES)
def test_the_index_leads_to_every_page(name: str) -> None:
    """And each is there."""
    assert f'href="/help/{name}/"' in read()


def test_an_unknown_page_is_a_404() -> None:
    """Not a template of that name."""
    client = signed_in()
    assert client.get("/help/index/").status_code == 404


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_shown(name: str) -> None:
    """To whoever may look."""
    assert '<article class="prose">' in read(f"{name}/")


def test_every_status_outcome_and_reason_is_explained() -> None:
    """All but ``waiting``, which comes with agents."""
    page = read("words/")
    for value in {*Status, *Outcome, *Reason} - {Status.WAITING}:
        assert f">{value.replace('_', ' ').replace('unstorable', 'result unstorable')}<" in page


def test_every_command_exists() -> None:
    """By its name."""
    named = set(re.findall(r"manage\.py ([a-z]+)", read("commands/")))
    assert {"up", "qcluster", "submit", "loadconfig", "dumpconfig"} <= named
    assert named <= set(get_commands())


def test_every_setting_is_read() -> None:
    """And every one that is read is explained."""
    named = set(re.findall(r"<td><code>([A-Z_]+)</code></td>", read("commands/")))
    code = "".join((settings.BASE_DIR / "config" / name).read_text() for name in ("settings.py", "database.py"))
    assert named == set(re.findall(r"env\.\w+\(\s*\"([A-Z_]+)\"", code))


def test_every_address_exists() -> None:
    """Those of the console."""
    named = re.findall(r"<code>(/[a-z-]+/)</code>", read("commands/"))
    assert len(named) >= 6
    for path in named:
        try:
            resolve(path)
        except Resolver404:
            pytest.fail(f"{path} leads nowhere")
