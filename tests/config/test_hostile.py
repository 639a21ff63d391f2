"""Every address with everything that somebody might put into it: a page or a sentence, never a failure of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from deadletters.filters import LetterFilter
from tasks.api.problems import MEDIA_TYPE
from tasks.filters import AuditFilter, TaskFilter
from tasks.models import OperatorProfile
from tasks.states import Outcome
from tests.deadletters import deaths
from tests.factories import PASSWORD, make_attempt, make_task

pytestmark = pytest.mark.django_db

NUMBERS = ("-1", "9223372036854775808", "9" * 30, "1e999")
TIMES = ("0001-01-01", "9999-12-31", "9999-12-31 23:59:59+00:00", "99999w")
TEXTS = ("\x00", "(", "\\", "_00", "http://[", "x" * 5_000)
VALUES = (*NUMBERS, *TIMES, *TEXTS, "ffffffff-ffff-ffff-ffff-ffffffffffff")
#: What stands in a part of a path, besides the id of something that exists.
PARTS = ("a\x00b", "x_00y", "(", "9" * 30, "9223372036854775808", "1", "x" * 3_000)
PART = re.compile(r"<(?:(?P<sort>\w+):)?(?P<name>\w+)>|\(\?P<(?P<group>\w+)>[^)]*\)")

PAGING = ("before", "after", "id", "top")
CHANGELIST = ("q", "p", "o", "all", "e", "_to_field", "_popup", "_changelist_filters")
PARAMS = {
    "/tasks/": (*TaskFilter.base_fields, *PAGING),
    "/tasks/rows/": (*TaskFilter.base_fields, *PAGING),
    "/dead-letters/": (*LetterFilter.base_fields, *PAGING),
    "/dead-letters/rows/": (*LetterFilter.base_fields, *PAGING),
    "/audit/": (*AuditFilter.base_fields, *PAGING),
    "/tasks/TASK/attempts/": ("before",),
    "/tasks/TASK/events/": ("before",),
    "/login/": ("next",),
    "/admin/login/": ("next",),
    "/admin/autocomplete/": ("term", "app_label", "model_name", "field_name", "p"),
    "/admin/tasks/kind/": CHANGELIST,
    "/admin/tasks/kind/add/": CHANGELIST,
    "/admin/tasks/errorrule/": CHANGELIST,
    "/admin/auth/user/": CHANGELIST,
    "/admin/django_q/schedule/": CHANGELIST,
}
FIELDS = (
    *("reason", "next", "name", "action", "username", "password", "post", "time_zone", "subject", "id", "prompt"),
    *("_selected_action", "old_password", "new_password1", "position", "max_attempts", "message", "next_run", "code"),
)
LOOKUPS = ("exact", "regex", "in", "range", "isnull", "gte", "year", "has_key", "pk")
COLUMNS = {
    "tasks/kind": ("name", "prompt", "provider", "max_attempts", "jitter", "output_schema", "created_at"),
    "tasks/promptversion": ("number", "kind"),
    "tasks/errorcode": ("level", "retryable"),
    "tasks/errorrule": ("position", "code", "id"),
    "tasks/provider": ("name", "held_at"),
    "auth/user": ("id", "is_active", "groups", "last_login"),
    "auth/group": ("id", "permissions"),
    "django_q/schedule": ("id", "next_run"),
}


def routes(resolver: URLResolver | None = None, before: str = "") -> Iterator[str]:
    """Every address of the project, with its converters in angle brackets."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = before + str(pattern.pattern).replace("^", "").replace("$", "")
        if isinstance(pattern, URLPattern):
            yield route
        else:
            yield from routes(pattern, route)


ROUTES = sorted({route for route in routes() if not route.endswith("(?P<url>.*)")})


class World:
    """Something of everything, and a superuser's client far from UTC."""

    def __init__(self) -> None:
        letter = deaths.letter(state="open")
        task = make_task()
        make_attempt(task, Outcome.FAILED)
        self.ids = {"task_id": str(task.pk), "letter_id": str(letter.pk), "app_label": "tasks"}
        self.root = User.objects.create_superuser("root", password=PASSWORD)
        OperatorProfile.objects.create(user=self.root, time_zone="Asia/Taipei")
        self.client = Client(raise_request_exception=False)
        self.client.force_login(self.root)

    def ask(self, method: str, path: str, *args: object, **kwargs: object) -> HttpResponse:
        """The answer, which must not be a failure, and must be a page where it refuses."""
        response: HttpResponse = getattr(self.client, method)(path, *args, **kwargs)
        what = f"{method} {path[:120]} {str(args)[:120]}"
        assert response.status_code < 500, what
        if response.status_code in (400, 404) and method != "head":
            assert b"<h1>" in response.content or response["Content-Type"] == MEDIA_TYPE, what
        return response

    def paths(self, route: str) -> Iterator[str]:
        """The address with each hostile part in each of its places."""
        parts = list(PART.finditer(route))
        for values in product(*(self._values(part) for part in parts)):
            given = iter(values)
            yield "/" + PART.sub(lambda _match, given=given: quote(next(given), safe=""), route)  # type: ignore[misc]

    def _values(self, part: re.Match[str]) -> tuple[str, ...]:
        known = self.ids.get(part["name"] or part["group"])
        if part["sort"] == "int":
            return ("1", *(number for number in PARTS if number.isdigit()))
        return (known,) if known else PARTS


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")


@pytest.mark.parametrize("route", ROUTES)
def test_no_path_is_a_failure(route: str, world: World) -> None:
    for path in world.paths(route):
        for method in ("get", "head", "options"):
            world.ask(method, path)


@pytest.mark.parametrize("route", [route for route in ROUTES if "logout" not in route])
def test_no_form_is_a_failure(route: str, world: World) -> None:
    for path, value in product(list(world.paths(route))[:2], ("\x00", "x" * 3_000, "9" * 30, "http://[")):
        world.ask("post", path, dict.fromkeys(FIELDS, value))


@pytest.mark.parametrize("path", PARAMS)
def test_no_parameter_is_a_failure(path: str, world: World) -> None:
    if path == "/login/":
        world.client.logout()
    for name, value in product(PARAMS[path], VALUES):
        world.ask("get", path.replace("TASK", world.ids["task_id"]), {"fresh": "1", name: value})


@pytest.mark.filterwarnings("ignore:DateTimeField .* received a naive datetime:RuntimeWarning")
@pytest.mark.parametrize("table", COLUMNS)
def test_no_lookup_of_the_admin_is_a_failure(table: str, world: World) -> None:
    for column, lookup in product(COLUMNS[table], LOOKUPS):
        for value in ("9" * 30, "1e999", "9999-12-31", "0001-01-01", "("):
            world.ask("get", f"/admin/{table}/", {f"{column}__{lookup}": value})


def test_a_pattern_in_an_address_is_refused(world: World) -> None:
    assert world.ask("get", "/admin/tasks/kind/", {"prompt__regex": "(((a*)*)*)*b"}).status_code == 400
    assert world.ask("get", "/admin/tasks/kind/", {"provider__name__exact": "acme"}).status_code == 200
