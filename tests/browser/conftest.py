"""Pages in a real browser: Debian's Chromium, driven by its path, against uvicorn on the test database.

Outside CI, where Chromium is missing, these tests are skipped and say so; with CI=true that is a failure.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, sync_playwright

from tasks import lifecycle
from tests.factories import PASSWORD, make_kind, make_user, make_worker

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: Seconds a browser test waits for anything.
DEADLINE = 15.0


@pytest.fixture(scope="module", autouse=True)
def _orm_beside_the_browser() -> Iterator[None]:
    """Playwright's loop runs in this thread, which Django takes for an async caller; its calls block here by intent."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield


@pytest.fixture(scope="module")
def playwright_driver(_orm_beside_the_browser: None) -> Iterator[Playwright]:
    """Playwright without its own browsers. For one file: while it lives, no other test can run a loop of its own."""
    if shutil.which(CHROMIUM) is None:
        message = f"no Chromium at {CHROMIUM}: install it (apt-get install chromium) or set CHROMIUM"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(message)
        pytest.skip(f"BROWSER TESTS NOT RUN: {message}")
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(playwright_driver: Playwright) -> Iterator[Browser]:
    """One browser for the file; each test has a context of its own."""
    browser = playwright_driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture
def operator(transactional_db: None) -> User:
    """A person who may look and act, signed in by ``page``."""
    return make_user("ana", "operate")


@pytest.fixture
def complaints() -> list[str]:
    """What pages reported to their console. A test that provokes a complaint takes it out."""
    return []


@pytest.fixture
def open_page(
    browser: Browser, site_url: str, complaints: list[str], transactional_db: None
) -> Iterator[Callable[..., Page]]:
    """Opens a page of a fresh context: ``open_page(as_="ana")`` signs in first; further options are the context's.

    The test fails if a page reported an error or a breach of the content policy to its console.
    """
    contexts: list[BrowserContext] = []

    def opened(as_: str | None = None, **options: object) -> Page:
        context = browser.new_context(base_url=site_url, **options)  # type: ignore[arg-type]
        context.set_default_timeout(DEADLINE * 1000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: _note(message, complaints))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if as_:
            sign_in(page, as_)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def _note(message: ConsoleMessage, complaints: list[str]) -> None:
    # A status the test provokes on purpose is logged by the browser as an error of loading.
    if message.type == "error" and not message.text.startswith("Failed to load resource"):
        complaints.append(message.text)


def sign_in(page: Page, name: str, password: str = PASSWORD) -> None:
    """Sign in by the form and wait for the page behind it."""
    page.goto("/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/tasks/**")


@pytest.fixture
def page(open_page: Callable[..., Page], operator: User) -> Page:
    """A page on which the operator “ana” is signed in."""
    return open_page(as_=operator.username)


@pytest.fixture
def kinds_page(page: Page) -> Iterator[Page]:
    """One kind, that is paused, and one that is not, with a worker that runs both."""
    make_worker(handlers=["invoices.check"])
    make_kind()
    make_kind("invoice.check", handler="invoices.check")
    lifecycle.pause_kind("ticket.triage", by="bea", reason="wrong language")
    page.goto("/kinds/")
    yield page
    page.unroute_all(behavior="ignoreErrors")
