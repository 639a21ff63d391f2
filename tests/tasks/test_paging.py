"""Keyset paging: forward, back, ends, edited keys."""

from __future__ import annotations

import pytest

from tasks.models import Task
from tasks.paging import Page, keyset
from tests.factories import make_task

pytestmark = pytest.mark.django_db


@pytest.fixture
def tasks() -> list[Task]:
    """Seven, newest first."""
    return [make_task(ago=ago) for ago in range(1, 8)]


def read(**params: str) -> Page[Task]:
    """A page of three."""
    return keyset(Task.objects.all(), params, size=3)


def test_the_first_page_is_the_newest(tasks: list[Task]) -> None:
    """With a way on, and none back."""
    page = read()
    assert page.rows == tasks[:3]
    assert (page.newer, page.older, page.is_first, page.top) == ("", str(tasks[2].pk), True, str(tasks[0].pk))


def test_it_walks_to_the_end_and_back(tasks: list[Task]) -> None:
    """Every row once."""
    second = read(before=read().older)
    assert second.rows == tasks[3:6] and not second.is_first
    last = read(before=second.older)
    assert last.rows == tasks[6:] and last.older == ""
    assert read(after=last.newer).rows == tasks[3:6]


def test_walking_up_to_the_top_shows_the_whole_first_page(tasks: list[Task]) -> None:
    """Not a stub of it."""
    page = read(after=str(tasks[1].pk))
    assert page.rows == tasks[:3] and page.is_first


def test_rows_that_came_in_meanwhile_move_nothing(tasks: list[Task]) -> None:
    """The second page is what it was."""
    key = read().older
    make_task(ago=0)
    assert read(before=key).rows == tasks[3:6]


def test_exactly_one_page_has_no_further_one(tasks: list[Task]) -> None:
    """The extra row that is read is not there."""
    Task.objects.filter(pk__in=[task.pk for task in tasks[3:]]).delete()
    assert (read().older, len(read().rows)) == ("", 3)


@pytest.mark.parametrize("params", [{"before": "nonsense"}, {"after": "\x00"}, {"before": "", "after": ""}])
def test_an_edited_key_gives_the_newest(tasks: list[Task], params: dict[str, str]) -> None:
    """Never an error."""
    assert read(**params).rows == tasks[:3]


def test_beyond_the_end_is_empty_with_a_way_back(tasks: list[Task]) -> None:
    """The rows below the key are gone."""
    page = read(before=str(tasks[6].pk))
    assert (page.rows, page.older, page.newer) == ([], "", str(tasks[6].pk))
