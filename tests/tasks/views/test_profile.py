"""A person's own preferences."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from tasks.models import OperatorProfile
from tests.tasks.views.doors import signed_in

pytestmark = pytest.mark.django_db
FORM = {"time_zone": "Asia/Taipei", "language": "zh-hant", "theme": "dark"}


def test_it_shows_the_defaults() -> None:
    """UTC, the browser's language, the system's theme."""
    page = signed_in("vera", "view").get("/profile/").content.decode()
    assert "Profile of vera" in page
    assert '<option value="UTC" selected>' in page and '<option value="system" selected>' in page


def test_it_saves_and_applies() -> None:
    """From the next page on."""
    client = signed_in("vera", "view")
    response = client.post("/profile/", FORM, follow=True)
    profile = OperatorProfile.objects.get()
    assert (profile.user.username, profile.time_zone, profile.theme) == ("vera", "Asia/Taipei", "dark")
    assert response.redirect_chain == [("/profile/", 303)]
    assert 'data-theme="dark"' in response.content.decode()
    client.post("/profile/", {**FORM, "theme": "light"})
    assert OperatorProfile.objects.get().theme == "light"


@pytest.mark.parametrize("bad", [{"time_zone": "Mars/Olympus"}, {"theme": "pink"}, {"language": "tlh"}])
def test_a_bad_choice_is_told(bad: dict[str, str], settings: Settings) -> None:
    """And nothing is saved."""
    settings.LANGUAGES = [("en", "English"), ("zh-hant", "Traditional Chinese")]
    response = signed_in().post("/profile/", {**FORM, **bad})
    assert response.status_code == 422
    assert "Select a valid choice" in response.content.decode() or "not one of" in response.content.decode()
    assert not OperatorProfile.objects.exists()


def test_one_language_is_no_choice() -> None:
    """Until the console is translated, nobody is offered half of it."""
    assert 'name="language"' not in signed_in().get("/profile/").content.decode()


def test_only_ones_own() -> None:
    """There is no address of anybody else's."""
    signed_in("ana").post("/profile/", FORM)
    signed_in("bea").post("/profile/", {**FORM, "theme": "light"})
    themes = dict(OperatorProfile.objects.values_list("user__username", "theme"))
    assert themes == {"ana": "dark", "bea": "light"}
