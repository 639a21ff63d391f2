"""People with and without permissions."""

from __future__ import annotations

from django.contrib.auth.models import Permission, User


def person(name: str, *permissions: str) -> User:
    """A user with permissions of the app ``tasks``, made once."""
    user, made = User.objects.get_or_create(username=name)
    if made:
        user.set_password("long enough 1")
        user.save()
        user.user_permissions.set(Permission.objects.filter(content_type__app_label="tasks", codename__in=permissions))
    return User.objects.get(pk=user.pk)


def viewer() -> User:
    """May look."""
    return person("vera", "view_console")


def operator(name: str = "ana") -> User:
    """May look and act."""
    return person(name, "view_console", "operate")


def configurer() -> User:
    """May look, act and configure."""
    return person("carl", "view_console", "operate", "configure")
