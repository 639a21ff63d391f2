"""The operator's zone, language and theme; a login that expired under a fragment."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client
from django.utils import timezone, translation
from pytest_django.fixtures import Settings

from tasks.models import OperatorProfile
from tests.factories import make_task, make_user

pytestmark = pytest.mark.django_db


def test_times_are_shown_in_the_operators_zone(client: Client) -> None:
    """UTC in the database, the operator's own zone on the page, both in the ``title``."""
    user = make_user()
    OperatorProfile.objects.create(user=user, time_zone="Asia/Taipei")
    client.force_login(user)
    task = make_task()
    task.__class__.objects.filter(pk=task.pk).update(created_at=datetime(2026, 1, 31, 20, 0, tzinfo=UTC))
    page = client.get(f"/tasks/{task.pk}/").content.decode()
    assert 'title="2026-02-01 04:00:00 CST"' in page
    assert "Times in Asia/Taipei" in page


def test_an_unknown_zone_is_utc(client: Client) -> None:
    """A zone that this machine does not know breaks no page."""
    user = make_user()
    OperatorProfile.objects.create(user=user, time_zone="Mars/Olympus")
    client.force_login(user)
    assert "Times in UTC" in client.get("/tasks/").content.decode()


@pytest.mark.parametrize(("theme", "shown"), [("dark", 'data-theme="dark"'), ("light", 'data-theme="light"')])
def test_a_chosen_theme_is_on_the_page(client: Client, theme: str, shown: str) -> None:
    """In the HTML itself: nothing flashes while scripts load."""
    user = make_user()
    OperatorProfile.objects.create(user=user, theme=theme)
    client.force_login(user)
    assert shown in client.get("/tasks/").content.decode()


def test_without_a_profile_the_system_chooses(client: Client) -> None:
    """No theme attribute: the style sheet follows the system."""
    client.force_login(make_user())
    assert "data-theme" not in client.get("/tasks/").content.decode()


def test_the_operators_language_wins(client: Client, settings: Settings) -> None:
    """Over the browser's, where more than one is offered."""
    settings.LANGUAGES = [("en", "English"), ("zh-hans", "Simplified Chinese")]
    user = make_user()
    OperatorProfile.objects.create(user=user, language="zh-hans")
    client.force_login(user)
    page = client.get("/tasks/", headers={"accept-language": "en"})
    assert '<html lang="zh-hans"' in page.content.decode()


def test_nothing_of_it_outlives_the_request(client: Client) -> None:
    """The next request of the same thread begins anew."""
    user = make_user()
    OperatorProfile.objects.create(user=user, time_zone="Asia/Taipei", language="zh-hant")
    client.force_login(user)
    client.get("/tasks/")
    assert (timezone.get_current_timezone_name(), translation.get_language()) == ("UTC", "en")


def test_an_expired_login_under_a_fragment_leads_the_whole_page_to_the_login(client: Client) -> None:
    """Not the login form into the table."""
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/tasks/?status=dead"}
    response = client.get("/tasks/rows/", headers=headers)
    assert response.status_code == 200
    assert response.headers["HX-Redirect"] == "/login/?next=%2Ftasks%2F%3Fstatus%3Ddead"
    assert response.content == b""


def test_an_expired_login_on_a_page_is_a_redirect(client: Client) -> None:
    """To the login, and back afterwards."""
    response = client.get("/tasks/?status=dead")
    assert (response.status_code, response.headers["Location"]) == (302, "/login/?next=/tasks/%3Fstatus%3Ddead")
