"""The admin under the console's content policy: no page of it breaks it, and its forms work in a browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tasks.models import ErrorRule
from tests.factories import PASSWORD, make_kind, make_user

PATHS = (
    "/admin/",
    "/admin/tasks/provider/",
    "/admin/tasks/provider/acme/change/",
    "/admin/tasks/kind/",
    "/admin/tasks/kind/add/",
    "/admin/tasks/kind/ticket.triage/change/",
    "/admin/tasks/kind/ticket.triage/history/",
    "/admin/tasks/kind/ticket.triage/delete/",
    "/admin/tasks/promptversion/",
    "/admin/tasks/errorcode/",
    "/admin/tasks/errorcode/AI_RATE_LIMITED/change/",
    "/admin/tasks/errorrule/add/",
    "/admin/password_change/",
)
PEOPLE = ("/admin/auth/user/", "/admin/auth/user/add/", "/admin/auth/group/add/", "/admin/django_q/schedule/add/")


@pytest.fixture
def root(transactional_db: None) -> User:
    """A superuser."""
    return User.objects.create_superuser("root", password=PASSWORD)


def test_no_page_breaks_the_content_policy(open_page: Callable[..., Page], root: User) -> None:
    make_kind()
    page = open_page(as_="root")
    for path in (*PATHS, *PEOPLE):
        response = page.goto(path)
        assert response is not None
        assert response.status == 200, path
        page.wait_for_load_state("networkidle")
    # ``open_page`` fails the test if any of them complained.


def test_a_long_name_makes_no_page_wider_than_a_phone(open_page: Callable[..., Page], root: User) -> None:
    name = "enterprise.customer.ticket." * 3
    make_kind(name)
    page = open_page(as_="root", viewport={"width": 390, "height": 800})
    page.goto(f"/admin/tasks/kind/{name}/change/")
    expect(page.locator("#content > h2")).to_have_text(name)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_rule_is_written_and_mended_in_the_browser(open_page: Callable[..., Page], transactional_db: None) -> None:
    make_user("carl", "configure")
    page = open_page(as_="carl")
    page.get_by_role("link", name="Configuration").click()
    page.get_by_role("link", name="Error rules", exact=True).click()
    page.get_by_role("link", name="Add error rule").first.click()
    page.get_by_label("Code").select_option("AI_OVERLOADED")
    page.get_by_label("Message").fill("(busy")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".errorlist").last).to_contain_text("is no re2 pattern")
    expect(page.get_by_label("Message")).to_have_value("(busy")
    # Saved rules are tests/tasks/test_admin.py's: the server of this run keeps the ids of content types that the flush
    # between these tests makes anew.
    assert not ErrorRule.objects.exists()
