"""axe finds nothing on any page: WCAG 2.2, levels A and AA."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.contrib.auth.models import User
from playwright.sync_api import Page

from tests.browser.pages import ADMIN, Scheme, fill, show
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OPTIONS = {"runOnly": {"type": "tag", "values": LEVELS}, "resultTypes": ["violations"]}
#: Django's own markup: a span that carries a name, beside the search box of a two-sided list.
NOT_OURS = {"exclude": [[".help-tooltip"]]}
Screen = tuple[int, Scheme]
#: Only what is wrong comes back: the list of all that is right is as long as the page.
RUN = "([context, options]) => axe.run(context, options).then((found) => found.violations)"


def violations(page: Page) -> list[str]:
    """What axe finds: the rule and the element, for each."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate(RUN, [NOT_OURS, OPTIONS])
    return [f"{rule['id']}: {node['target']}" for rule in found for node in rule["nodes"]]


def look(page: Page, paths: Iterable[str], screens: Iterable[Screen]) -> dict[str, list[str]]:
    """Each path and screen with what axe finds there, all folds open; only those where it finds something."""
    page.add_init_script(AXE_SCRIPT)  # kept by the browser: half a megabyte need not be sent for each page
    found = {}
    for path in paths:
        loaded = None
        for width, scheme in screens:
            show(page, width, scheme)
            if scheme != loaded:
                # Anew: Django's admin fades from the colours of one scheme to those of the other.
                page.goto(path)
                page.evaluate("document.querySelectorAll('details:not(.ask)').forEach((one) => { one.open = true; })")
                loaded = scheme
            found[f"{path} at {width}, {scheme}"] = violations(page)
    return {path: faults for path, faults in found.items() if faults}


def test_the_console(open_page: Callable[..., Page], operator: User) -> None:
    screens: list[Screen] = [(1280, "dark"), (1280, "light"), (390, "light")]
    paths = fill(operator)
    assert look(open_page(), ["/login/"], screens) == {}
    assert look(open_page(as_=operator.username), paths, screens) == {}


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


def test_the_admin(open_page: Callable[..., Page], operator: User, complaints: list[str]) -> None:
    fill(operator)
    User.objects.create_superuser("root", password=PASSWORD)
    paths = [f"/admin/{path}" for path in ADMIN]
    assert look(open_page(as_="root"), paths, [(1280, "light"), (1280, "dark")]) == {}
    # axe itself tries to write a style there; test_admin.py sees to it that the pages do not.
    complaints[:] = [complaint for complaint in complaints if "inline style" not in complaint]


def test_axe_sees(open_page: Callable[..., Page], operator: User) -> None:
    """A button without a name, a field without a label."""
    page = open_page(as_=operator.username)
    page.evaluate("""document.querySelector("main").insertAdjacentHTML("beforeend", "<button></button><input>")""")
    assert [fault.partition(":")[0] for fault in violations(page)][:2] == ["button-name", "label"]
