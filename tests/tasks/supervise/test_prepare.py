"""The first login."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from pytest_django.fixtures import Settings

from tasks.supervise import prepare

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("password", "why"),
    [("short", "too short"), ("password1", "too common"), ("1234", "too short"), (" ", "too short")],
)
def test_a_weak_password_of_the_environment_is_refused_in_one_sentence(
    password: str, why: str, settings: Settings
) -> None:
    settings.REDRIVE_OPERATOR_PASSWORD = password
    with pytest.raises(CommandError) as refused:
        prepare.ensure_operator()
    told = str(refused.value)
    assert told.startswith("REDRIVE_OPERATOR_PASSWORD cannot be the operator's password: This password is ")
    assert why in told and told.endswith("Set another.") and "\n" not in told
    assert not User.objects.exists()


def test_once_the_login_exists_the_setting_is_not_looked_at(settings: Settings) -> None:
    settings.REDRIVE_OPERATOR_PASSWORD = "correct horse battery"
    assert prepare.ensure_operator() == "login: user operator, password from REDRIVE_OPERATOR_PASSWORD"
    settings.REDRIVE_OPERATOR_PASSWORD = "short"
    assert prepare.ensure_operator().startswith("login: user operator (exists;")
    assert User.objects.get().check_password("correct horse battery")


def test_without_the_setting_a_password_is_made_that_is_good_enough(settings: Settings) -> None:
    settings.REDRIVE_OPERATOR_PASSWORD = ""
    made = prepare.ensure_operator().split("password ")[1].split(" ")[0]
    assert User.objects.get().check_password(made)
    prepare._check_password(made)
