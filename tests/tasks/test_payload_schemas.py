"""What a handler says of its payloads holds at every door, and once more before it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from deadletters.models import DeadLetter
from tasks import lifecycle, payload_schemas, submit
from tasks.engine import registry
from tasks.lifecycle import SubmitError
from tasks.models import Kind, Task
from tests.tasks.api.keys import caller
from tests.tasks.engine import bench

ORDER = {
    "type": "object",
    "properties": {"customer": {"type": "string"}, "size": {"enum": ["small", "large"]}, "items": {"type": "array"}},
    "required": ["customer"],
    "additionalProperties": False,
}
SAID = "The payload does not fit the schema of the handler 'shop.order': "
MISSING = "customer: missing (expected string)"
SIZE = "size: 'huge' is not one of ['small', 'large'] (allowed: \"small\", \"large\")"


@pytest.fixture(autouse=True)
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """A handler with a schema; the payloads that it was given."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))
    monkeypatch.setattr(payload_schemas, "_schemas", {})
    given: list[Any] = []

    @registry.handler("shop.order", payload_schema=ORDER)
    async def order(context: Any) -> None:
        given.append(context.payload)

    yield given


@pytest.fixture
def kind(db: None) -> Kind:
    return Kind.objects.create(name="order", handler="shop.order")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "objekt"}, "the schema is wrong at type: 'objekt' is not valid under any of the given schemas"),
        ([], "the schema must be a JSON object"),
        ({"pattern": "(?=x)"}, "the pattern '(?=x)' cannot be used"),
        ({"$ref": "#/$defs/gone"}, "leads nowhere"),
        ({"default": {1, 2}}, "not JSON serializable"),
    ],
    ids=["type", "list", "pattern", "reference", "set"],
)
def test_a_schema_that_is_none_is_told_where_it_is_given(schema: Any, why: str) -> None:
    with pytest.raises(ValueError, match=r"^The payload_schema of the handler 'shop\.x' cannot be used: ") as told:
        registry.handler("shop.x", payload_schema=schema)(lambda context: None)
    assert why in str(told.value)
    assert registry.find("shop.x") is None


REFUSED = [
    ({}, MISSING),
    ({"customer": 7}, "customer: 7 is not of type 'string' (expected string)"),
    ({"customer": "Ana", "size": "huge"}, SIZE),
    ({"size": "huge"}, f"{MISSING}; {SIZE}"),
    ({"customer": "Ana", "sise": 1}, "sise: no such field"),
    ("Ana", "(top level): 'Ana' is not of type 'object'"),
]


@pytest.mark.parametrize(("payload", "said"), REFUSED, ids=["missing", "type", "enum", "two", "unknown", "text"])
def test_submit_names_the_field_what_was_expected_and_what_came(kind: Kind, payload: Any, said: str) -> None:
    with pytest.raises(SubmitError) as error:
        submit("order", payload)
    assert str(error.value).startswith(f"{SAID}{said}")
    assert not Task.objects.exists()


def test_what_fits_is_taken_as_it_will_be_read(kind: Kind) -> None:
    """A tuple is an array in JSON."""
    assert submit("order", {"customer": "Ana", "items": (1, 2)}).status == "ready"


def test_of_many_each_that_does_not_fit_is_told_by_its_place(kind: Kind) -> None:
    payloads = [{"customer": "Ana"}, {}, {"customer": "Eva"}, {"customer": 1}, {"customer": "\x00"}]
    with pytest.raises(SubmitError) as error:
        lifecycle.submit_many("order", payloads)
    assert {place: why.sentence.removeprefix(SAID) for place, why in error.value.payloads.items()} == {
        1: MISSING,
        3: "customer: 1 is not of type 'string' (expected string)",
        4: "The payload holds a NUL character (\\u0000), which PostgreSQL cannot store.",
    }
    assert not Task.objects.exists()


def test_the_check_costs_no_query(kind: Kind) -> None:
    def cost(count: int) -> int:
        with CaptureQueriesContext(connection) as queries:
            lifecycle.submit_many("order", [{"customer": "Ana"}] * count)
        return len(queries)

    assert cost(1) == cost(300)


#: Each number fits the last alternative only, so that there is no fault at which the check could stop.
OTHERS = [{"type": "string", "minLength": n} for n in range(40)]
HOSTILE: dict[str, Any] = {"items": {"anyOf": [*OTHERS, {"type": "integer"}]}}


def test_a_payload_that_would_take_for_ever_is_refused(kind: Kind) -> None:
    payload_schemas.declare("shop.order", HOSTILE)
    with pytest.raises(SubmitError, match="takes more than 3000000 steps to check this payload; send less"):
        submit("order", [1] * 300_000)
    with pytest.raises(SubmitError, match=r"nested|does not fit"):
        submit("order", json.loads("[" * 400 + "]" * 400))


def test_a_process_that_does_not_know_the_handler_submits_and_the_worker_refuses(kind: Kind, seen: list[Any]) -> None:
    """Dead at once, though the kind has three attempts: no retry mends it."""
    payload_schemas.declare("shop.order", None)
    worker, (job,) = bench.claim(kind, [{"size": "huge", "customer": "password=hunter2secret"}])
    payload_schemas.declare("shop.order", ORDER)
    bench.end_of(worker, job)
    letter = DeadLetter.objects.get()
    assert (letter.reason, letter.error_code, letter.attempts) == ("not_retryable", "AI_INPUT_INVALID", 1)
    assert SAID + SIZE in letter.last_error
    assert seen == []


def test_the_worker_is_not_kept_by_a_payload_that_would_take_for_ever(kind: Kind, seen: list[Any]) -> None:
    payload_schemas.declare("shop.order", None)
    worker, (job,) = bench.claim(kind, [[1] * 300_000])
    payload_schemas.declare("shop.order", HOSTILE)
    bench.end_of(worker, job)
    assert "takes more than 3000000 steps" in DeadLetter.objects.get().last_error
    assert seen == []


def test_what_fits_runs(kind: Kind, seen: list[Any]) -> None:
    assert bench.attempt(kind, {"customer": "Ana"}).outcome == "succeeded"
    assert seen == [{"customer": "Ana"}]


def test_http_answers_422_and_names_each_field(kind: Kind) -> None:
    response = caller().post("/tasks", {"kind": "order", "payload": {"size": "huge"}})
    assert (response.status_code, response["Content-Type"]) == (422, "application/problem+json")
    assert response.json()["detail"] == f"{SAID}{MISSING}; {SIZE}"
    assert response.json()["errors"] == [
        {"field": "payload.customer", "message": "missing (expected string)"},
        {"field": "payload.size", "message": SIZE.removeprefix("size: ")},
    ]
    top = caller(name="other").post("/tasks", {"kind": "order", "payload": 1}).json()["errors"]
    assert [fault["field"] for fault in top] == ["payload"]
    assert not Task.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_command_tells_the_line_and_submits_the_others(test_database_url: str) -> None:
    Kind.objects.create(name="weigh", handler="workshop.weigh")
    environment = {
        **os.environ,
        "DATABASE_URL": test_database_url,
        "SECRET_KEY": "only-for-tests",
        "REDRIVE_APPS": "tests.tasks.engine.workshop",
    }
    lines = ['{"grams": 7}', '{"grams": "heavy"}', '{"grams": 9}', "[]", '{"grams": 1.5}', '{"grams": 8}']
    run = subprocess.run(
        [sys.executable, "manage.py", "submit", "weigh", "--input", "-"],
        input="\n".join(lines),
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    said = "The payload does not fit the schema of the handler 'workshop.weigh': "
    assert run.returncode == 2
    assert run.stderr.splitlines() == [
        f"line 2: {said}grams: 'heavy' is not of type 'integer' (expected integer)",
        f"line 4: {said}(top level): [] is not of type 'object' (expected object)",
        f"line 5: {said}grams: 1.5 is not of type 'integer' (expected integer)",
        "Submitted 3 tasks of weigh; 3 lines were bad.",
    ]
    stored = Task.objects.in_bulk([UUID(line) for line in run.stdout.split()])
    assert sorted(task.payload["grams"] for task in stored.values()) == [7, 8, 9]
