"""The groups that every installation has."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("view", {"view_console"}),
        ("operate", {"view_console", "operate"}),
        ("configure", {"view_console", "operate", "configure"}),
    ],
)
def test_each_group_includes_the_one_before(name: str, held: set[str]) -> None:
    group = Group.objects.get(name=name)
    assert set(group.permissions.values_list("codename", flat=True)) == held


def test_a_member_has_the_permissions() -> None:
    user = User.objects.create_user("ana")
    user.groups.add(Group.objects.get(name="operate"))
    assert user.has_perm("tasks.view_console")
    assert user.has_perm("tasks.operate")
    assert not user.has_perm("tasks.configure")


@pytest.mark.django_db(transaction=True)
def test_migrating_again_mends_a_group_and_keeps_what_was_added() -> None:
    group = Group.objects.get(name="operate")
    group.permissions.set(Permission.objects.filter(codename="add_user"))
    call_command("migrate", verbosity=0)
    assert set(group.permissions.values_list("codename", flat=True)) == {"view_console", "operate", "add_user"}
