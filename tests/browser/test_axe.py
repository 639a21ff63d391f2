"""axe finds nothing on any page: WCAG 2.2, levels A and AA."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import Page

from tests.browser.pages import ADMIN, fill
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OPTIONS = {"runOnly": {"type": "tag", "values": LEVELS}, "resultTypes": ["violations"]}
#: Django's own markup: a span that carries a name, beside the search box of a two-sided list.
NOT_OURS = {"exclude": [[".help-tooltip"]]}
SCREENS = [("light", 1280), ("dark", 1280), ("light", 390)]


def violations(page: Page) -> list[str]:
    """What axe finds: the rule and the element, for each."""
    response = Axe().run(page, context=NOT_OURS, options=OPTIONS).response
    return [f"{rule['id']}: {node['target']}" for rule in response["violations"] for node in rule["nodes"]]


def look(page: Page, paths: Iterable[str]) -> dict[str, list[str]]:
    """Each path with what axe finds there, all folds open; only those where it finds something."""
    found = {}
    for path in paths:
        page.goto(path)
        page.evaluate("document.querySelectorAll('details:not(.ask)').forEach((one) => { one.open = true; })")
        found[path] = violations(page)
    return {path: faults for path, faults in found.items() if faults}


@pytest.mark.parametrize(("scheme", "width"), SCREENS)
def test_the_console(open_page: Callable[..., Page], operator: User, scheme: str, width: int) -> None:
    paths = fill(operator)
    stranger = open_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    assert look(stranger, ["/login/"]) == {}
    page = open_page(as_=operator.username, color_scheme=scheme, viewport={"width": width, "height": 800})
    assert look(page, paths) == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_open_sheet_and_the_bar_of_ticked_rows(open_page: Callable[..., Page], operator: User, scheme: str) -> None:
    fill(operator)
    page = open_page(as_=operator.username, color_scheme=scheme)
    page.goto("/dead-letters/")
    page.locator("input.tick").first.check()
    assert violations(page) == []
    page.locator("#letter-rows .title").first.click()
    page.wait_for_url("**/dead-letters/*-*/")
    page.keyboard.press("r")
    page.locator("details.ask[open]").wait_for()
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_admin(open_page: Callable[..., Page], operator: User, scheme: str, complaints: list[str]) -> None:
    fill(operator)
    User.objects.create_superuser("root", password=PASSWORD)
    page = open_page(as_="root", color_scheme=scheme, viewport={"width": 1280, "height": 800})
    assert look(page, [f"/admin/{path}" for path in ADMIN]) == {}
    # axe itself tries to write a style there; test_admin.py sees to it that the pages do not.
    complaints[:] = [complaint for complaint in complaints if "inline style" not in complaint]


def test_axe_sees(open_page: Callable[..., Page], operator: User) -> None:
    """A button without a name, a field without a label."""
    page = open_page(as_=operator.username)
    page.evaluate("""document.querySelector("main").insertAdjacentHTML("beforeend", "<button></button><input>")""")
    assert [fault.partition(":")[0] for fault in violations(page)][:2] == ["button-name", "label"]
