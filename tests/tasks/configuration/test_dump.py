"""What is dumped, loaded again, is the same."""

from __future__ import annotations

import tomllib

import pytest

from tasks.configuration.dump import dump
from tasks.configuration.keys import TABLES
from tasks.configuration.load import load
from tasks.models import ErrorCode, Kind

pytestmark = pytest.mark.django_db

FILE = '''
[[provider]]
name = "local"
base_url = "http://ollama:11434/v1"
max_concurrency = 4
[[kind]]
name = "ticket.triage"
provider = "local"
model = "small"
prompt = """
Sort "this":
{{ text|default:"-" }} \\\\ """
output_schema = '{"type": "object", "properties": {"团队": {"const": true}}}'
temperature = 0.1
safe_to_rerun = false
fallback_result = '"sorry"'
[[kind]]
name = "sync"
handler = "sync"
priority = -3
[[error_code]]
code = "MINE"
retryable = true
[[error_code]]
code = "AI_RATE_LIMITED"
max_attempts = 2
[[rule]]
code = "MINE"
message = "a|b"
enabled = false
[[rule]]
code = "AI_OVERLOADED"
http_status = "418"
'''


def test_loading_the_dump_changes_nothing() -> None:
    load(FILE)
    text = dump()
    assert not load(text).changed
    assert dump() == text


def test_the_dump_makes_the_same_elsewhere() -> None:
    load(FILE)
    text = dump()
    Kind.objects.all().delete()
    load("rule = []\n")
    load(text)
    assert dump() == text
    assert Kind.objects.get(pk="ticket.triage").prompt == 'Sort "this":\n{{ text|default:"-" }} \\ '


def test_only_what_differs_is_written() -> None:
    load(FILE)
    tables = tomllib.loads(dump())
    assert list(tables) == list(TABLES)
    assert tables["kind"][0] == {"name": "sync", "handler": "sync", "priority": -3}
    assert tables["error_code"] == [
        {"code": "AI_RATE_LIMITED", "max_attempts": 2},
        {"code": "MINE", "retryable": True},
    ]
    assert tables["rule"][1] == {"code": "AI_OVERLOADED", "http_status": "418"}


def test_what_was_cleared_comes_back_cleared() -> None:
    """An operator left a built-in code's waits to the kind."""
    cleared = {"initial_interval_seconds": None, "maximum_interval_seconds": None}
    row = ErrorCode.objects.filter(pk="AI_MODEL_LOADING")
    row.update(**cleared, changed_fields=sorted(cleared))
    text = dump()
    assert tomllib.loads(text)["error_code"] == [{"code": "AI_MODEL_LOADING", **dict.fromkeys(cleared, "kind")}]
    assert not load(text).changed
    row.update(initial_interval_seconds=5.0, maximum_interval_seconds=60.0, changed_fields=[])
    load(text)
    assert row.values(*cleared).get() == cleared
    assert dump() == text


def test_nothing_configured_is_an_empty_file() -> None:
    assert dump() == ""
