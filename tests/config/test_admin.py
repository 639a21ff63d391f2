"""The admin site: its door, people, and what of django-q2 is left."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from tasks.models import OperatorAction, OperatorProfile
from tests.factories import PASSWORD, make_task, make_user

pytestmark = pytest.mark.django_db
PEOPLE = ["/admin/auth/user/", "/admin/auth/user/add/", "/admin/auth/group/", "/admin/django_q/schedule/"]


@pytest.fixture
def root() -> Client:
    """A superuser's client."""
    client = Client()
    client.force_login(User.objects.create_superuser("root", password=PASSWORD))
    return client


def client_of(user: User) -> Client:
    """A signed-in client."""
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("path", PEOPLE)
def test_people_and_schedules_are_for_superusers(path: str, root: Client) -> None:
    assert root.get(path).status_code == 200
    assert client_of(make_user("carl", "configure")).get(path).status_code == 403


def test_who_may_configure_sees_no_people_on_the_first_page(root: Client) -> None:
    page = client_of(make_user("carl", "configure")).get("/admin/").content.decode()
    assert "Error codes" in page
    assert "Users" not in page
    assert page.index("Kinds") > 0
    assert root.get("/admin/").content.decode().index("Kinds") < root.get("/admin/").content.decode().index("Users")


@pytest.mark.parametrize(
    ("theme", "dark"),
    [
        ("light", None),
        ("dark", 'css/admin-dark.css">'),
        ("system", 'css/admin-dark.css" media="(prefers-color-scheme: dark)">'),
    ],
)
def test_the_admin_wears_the_operators_theme(theme: str, dark: str | None) -> None:
    """The console's choice, not a second one of its own."""
    carl = make_user("carl", "configure")
    OperatorProfile.objects.create(user=carl, theme=theme)
    page = client_of(carl).get("/admin/").content.decode()
    assert ("admin-dark.css" in page) == (dark is not None)
    assert dark is None or dark in page
    assert "theme-toggle" not in page


def test_every_page_has_the_way_back_to_the_console(root: Client) -> None:
    for path in ("/admin/", "/admin/password_change/"):
        assert ">To the console</a>" in root.get(path).content.decode()


@pytest.mark.parametrize("model", ["success", "failure", "ormq"])
def test_django_q_s_own_queue_and_results_are_gone(model: str, root: Client) -> None:
    assert root.get(f"/admin/django_q/{model}/").status_code == 404


def schedules() -> Any:
    """The schedules of django-q2, which only the engine imports."""
    return apps.get_model("django_q", "Schedule").objects


def test_a_schedule_that_ran_under_stock_django_q_does_not_break_the_list(root: Client) -> None:
    from django_q.models import Task

    Task.objects.create(
        id="a" * 32, name="done", func="math.sqrt", success=True, started=timezone.now(), stopped=timezone.now()
    )
    schedules().create(name="nightly", func="math.sqrt", task="a" * 32)
    page = root.get("/admin/django_q/schedule/")
    assert page.status_code == 200
    assert "nightly" in page.content.decode()


def test_the_last_task_of_a_schedule_leads_to_its_page(root: Client) -> None:
    schedules().create(name="nightly", func="math.sqrt", task="b" * 32)
    schedules().create(name="never", func="math.sqrt")
    task = make_task(trace_id="b" * 32)
    page = root.get("/admin/django_q/schedule/").content.decode()
    assert f'<a href="/tasks/{task.pk}/">ready</a>' in page
    assert page.count("/tasks/01") == 1
    assert root.get(f"/tasks/{task.pk}/").status_code == 200


SCHEDULE = {
    "func": "math.sqrt",
    "schedule_type": "D",
    "repeats": "-1",
    "next_run_0": "2026-01-01",
    "next_run_1": "10:00",
}


def test_a_schedule_says_which_clock_it_goes_by(root: Client) -> None:
    page = root.get("/admin/django_q/schedule/add/").content.decode()
    assert "in the time zone of your profile" in page
    assert "every day at 3:00 UTC" in page
    assert 'aria-label="Next Run: date"' in page and 'aria-label="Next Run: time"' in page


def test_a_schedule_is_added_and_deleted(root: Client) -> None:
    """With cron, which needs croniter; by its own page and by the list's action."""
    cron = {
        **SCHEDULE,
        "schedule_type": "C",
        "cron": "30 4 * * 1",
        "args": "1, 'two'",
        "kwargs": "x=1",
        "name": "weekly",
    }
    assert root.post("/admin/django_q/schedule/add/", cron).status_code == 302
    assert root.post("/admin/django_q/schedule/add/", {**SCHEDULE, "schedule_type": "O"}).status_code == 302
    made = schedules().get(name="weekly")
    assert (made.cron, made.next_run.weekday()) == ("30 4 * * 1", 0)
    page = root.get(f"/admin/django_q/schedule/{made.pk}/change/")
    assert page.status_code == 200
    action = {"action": "delete_selected", "_selected_action": [made.pk], "post": "yes"}
    assert root.post("/admin/django_q/schedule/", action).status_code == 302
    assert [one.func for one in schedules().all()] == ["math.sqrt"]
    assert OperatorAction.objects.count() == 3


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"args": "1, two"}, "Its arguments cannot be read"),
        ({"kwargs": "x=y"}, "Its keyword arguments cannot be read"),
        ({"schedule_type": "C", "cron": "0 0 30 2 *"}, "Its next time cannot be told"),
        ({"schedule_type": "C", "cron": ""}, "Its next time cannot be told"),
        ({"schedule_type": "C", "cron": "often"}, "Exactly 5"),
        ({"next_run_0": "0001-01-01"}, "lies too far back"),
        ({"next_run_0": "9999-12-31"}, "Its next time cannot be told"),
    ],
    ids=["args", "kwargs", "no-day", "no-cron", "no-cron-at-all", "long-ago", "far-away"],
)
def test_a_schedule_that_could_not_be_fired_is_refused(fields: dict[str, str], sentence: str, root: Client) -> None:
    answer = root.post("/admin/django_q/schedule/add/", {**SCHEDULE, **fields})
    assert answer.status_code == 200
    assert sentence in answer.content.decode()
    assert not schedules().exists()


def test_a_change_of_people_leaves_an_audit_row_without_values(root: Client) -> None:
    response = root.post(
        "/admin/auth/user/add/",
        {"username": "bo", "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"},
    )
    assert response.status_code == 302
    bo = User.objects.get(username="bo")
    row = OperatorAction.objects.first()
    assert row is not None
    assert (row.username, row.action, row.target_type, row.target_id) == ("root", "add_user", "user", str(bo.pk))
    assert PASSWORD not in str(row.data)

    group = Group.objects.get(name="operate")
    root.post(f"/admin/auth/user/{bo.pk}/change/", {"username": "bo", "is_active": "on", "groups": [group.pk]})
    assert list(bo.groups.all()) == [group]
    row = OperatorAction.objects.first()
    assert row is not None
    assert (row.action, row.data["message"]) == ("change_user", [{"changed": {"fields": ["Groups"]}}])
    assert row.data["changes"] == {}


def test_deleted_people_keep_their_names_in_the_audit(root: Client) -> None:
    bo = make_user("bo")
    client_of(bo).post("/logout/")
    root.post(f"/admin/auth/user/{bo.pk}/delete/", {"post": "yes"})
    assert not User.objects.filter(username="bo").exists()
    assert OperatorAction.objects.filter(username="bo", user=None, action="signed_out").exists()
    newest = OperatorAction.objects.first()
    assert newest is not None
    assert (newest.action, newest.data["object"]) == ("delete_user", "bo")


def test_the_door_is_the_console_s() -> None:
    response = Client().get("/admin/login/?next=/admin/tasks/kind/")
    assert response["Location"] == "/login/?next=%2Fadmin%2Ftasks%2Fkind%2F"


def test_who_is_signed_in_and_may_not_is_told_so() -> None:
    response = client_of(make_user("ana", "operate")).get("/admin/", follow=True)
    assert response.status_code == 403
    assert "You may not see this" in response.content.decode()


def test_signing_out_and_a_new_password_leave_audit_rows() -> None:
    carl = make_user("carl", "configure")
    client = client_of(carl)
    new = "another horse battery"
    client.post("/admin/password_change/", {"old_password": PASSWORD, "new_password1": new, "new_password2": new})
    carl.refresh_from_db()
    assert carl.check_password(new)
    client.post("/admin/logout/")
    assert client.get("/admin/").status_code == 302
    assert list(OperatorAction.objects.values_list("action", flat=True)) == ["signed_out", "change_password"]
