"""The live rows of the list."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tasks import lifecycle
from tasks.states import Status
from tests.factories import make_task, make_user
from tests.tasks.views.doors import signed_in

pytestmark = pytest.mark.django_db


def read(*ids: UUID, **params: str) -> str:
    """The answer to a poll."""
    client = Client()
    client.force_login(User.objects.filter(username="ana").first() or make_user())
    return client.get("/tasks/rows/", {"id": [str(one) for one in ids], **params}).content.decode()


def targets(answer: str) -> list[str]:
    """What the answer changes, and how."""
    return re.findall(r'<hx-partial hx-target="#([^"]+)" hx-swap="(\w+)"', answer)


def test_only_the_rows_asked_for_come_back() -> None:
    """Each as a morph of its own row; the main target is left alone."""
    one, two, _other = make_task(), make_task(Status.DEAD), make_task()
    answer = read(one.pk, two.pk)
    assert set(targets(answer)) == {
        (f"task-{one.pk}", "outerMorph"),
        (f"task-{two.pk}", "outerMorph"),
        ("new-tasks", "innerMorph"),
    }


def test_a_row_is_told_as_it_is_now() -> None:
    """Its status changed since the list was read."""
    task = make_task()
    lifecycle.cancel([task.pk], actor="ana")
    assert "cancelled" in read(task.pk)


def test_a_row_that_left_the_filter_stays_and_says_so() -> None:
    """It does not vanish under the hand."""
    task = make_task()
    assert "no longer matches" not in read(task.pk, status="ready")
    answer = read(task.pk, status="dead")
    assert "no longer matches the filter" in answer and 'class="left"' in answer


def test_a_row_that_is_gone_is_removed() -> None:
    """Pruned meanwhile."""
    gone = uuid4()
    assert (f"task-{gone}", "delete") in targets(read(gone))


@pytest.mark.parametrize(("newer", "said"), [(0, None), (3, "3 new"), (100, "99+ new")])
def test_new_rows_are_counted_to_a_cap(newer: int, said: str | None) -> None:
    """And wait behind a link to the list with the same filter."""
    top = make_task(ago=600)
    make_task(Status.DEAD, ago=1)
    for number in range(newer):
        make_task(ago=500 - number)
    answer = read(top.pk, top=str(top.pk), fresh="1", status="ready")
    found = re.search(r'<a class="new" href="([^"]+)">([^<]+)</a>', answer)
    assert (found and (found[1], found[2])) == (said and ("/tasks/?status=ready", said))


def test_a_page_further_back_counts_nothing_new() -> None:
    """What is new stands on the first page."""
    top = make_task(ago=600)
    make_task()
    assert 'class="new"' not in read(top.pk, top=str(top.pk))


def test_an_empty_list_notices_its_first_row() -> None:
    """There is no newest row to start from."""
    make_task()
    assert "1 new" in read(fresh="1")


def test_nonsense_is_not_an_error() -> None:
    """An edited request."""
    client = signed_in()
    response = client.get("/tasks/rows/?id=x&id=%2B&top=y&fresh=1&since=soon")
    assert response.status_code == 200
    assert targets(response.content.decode()) == [("new-tasks", "innerMorph")]


def test_queries_do_not_grow_with_the_rows() -> None:
    """The same for 2 and for 40."""
    tasks = [make_task() for _ in range(40)]
    client = signed_in()

    def cost(count: int) -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get("/tasks/rows/", {"id": [str(task.pk) for task in tasks[:count]], "fresh": "1"})
        return len(queries)

    assert cost(40) == cost(2)
