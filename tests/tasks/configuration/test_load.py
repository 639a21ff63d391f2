"""loadconfig's heart: what a file does to the database, and that a bad file does nothing."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection, transaction

from tasks import lifecycle
from tasks.configuration.load import load
from tasks.configuration.problems import ConfigurationError
from tasks.errors.codes import CODES
from tasks.models import ErrorCode, ErrorRule, Kind, PromptVersion, Provider, Task

pytestmark = pytest.mark.django_db

PROVIDER = """
[[provider]]
name = "local"
base_url = "http://ollama:11434/v1"
api_key_env = "LOCAL_KEY"
requests_per_minute = 600
"""
KIND = """
[[kind]]
name = "ticket.triage"
provider = "local"
model = "small"
prompt = "Sort this: {{ text }}"
output_schema = '{"type": "object", "required": ["team"]}'
max_attempts = 5
jitter = 0
"""


def lines(text: str) -> list[str]:
    return [str(change) for change in load(text).changes]


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    return [str(problem) for problem in caught.value.problems]


def test_creates_what_the_file_names() -> None:
    assert lines(PROVIDER + KIND) == ["provider local: created", "kind ticket.triage: created; prompt version 1"]
    kind = Kind.objects.get(pk="ticket.triage")
    assert (kind.provider_id, kind.model, kind.max_attempts, kind.jitter) == ("local", "small", 5, 0.0)
    assert kind.output_schema == {"type": "object", "required": ["team"]}
    assert (kind.stream, kind.max_repairs, kind.deadline_seconds) == (True, 2, 86_400.0)
    assert kind.prompt_version is not None
    assert kind.prompt_version.prompt == "Sort this: {{ text }}"
    assert Provider.objects.get(pk="local").requests_per_minute == 600


def test_loading_again_changes_nothing() -> None:
    load(PROVIDER + KIND)
    before = Kind.objects.values().get(), Provider.objects.values().get()
    report = load(PROVIDER + KIND)
    assert not report.changed
    assert [change.outcome for change in report.changes] == ["unchanged", "unchanged"]
    assert (Kind.objects.values().get(), Provider.objects.values().get()) == before
    assert PromptVersion.objects.count() == 1


def test_a_key_that_is_left_out_goes_back_to_its_default() -> None:
    load(PROVIDER + KIND)
    shorter = KIND.replace("max_attempts = 5\n", "").replace("jitter = 0\n", "")
    assert lines(PROVIDER + shorter)[1] == "kind ticket.triage: changed (max_attempts, jitter)"
    kind = Kind.objects.get()
    assert (kind.max_attempts, kind.jitter) == (3, 0.5)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("Sort this", "Please sort this", "prompt"),
        ('"small"', '"large"', "model"),
        ('["team"]', '["team", "urgency"]', "output_schema"),
        ("jitter = 0", 'jitter = 0\nsystem_prompt = "Be brief."', "system_prompt"),
    ],
)
def test_only_prompt_schema_and_model_make_a_version(old: str, new: str, key: str) -> None:
    load(PROVIDER + KIND)
    assert lines(PROVIDER + KIND.replace(old, new))[1] == f"kind ticket.triage: changed ({key}); prompt version 2"
    assert lines(PROVIDER + KIND.replace(old, new).replace("max_attempts = 5", "max_attempts = 6"))[1] == (
        "kind ticket.triage: changed (max_attempts)"
    )


def test_true_and_one_are_two_versions_of_a_schema() -> None:
    with_schema = KIND.replace('{"type": "object", "required": ["team"]}', '{"const": 1}')
    load(PROVIDER + with_schema)
    changed = lines(PROVIDER + with_schema.replace('{"const": 1}', '{"const": true}'))
    assert changed[1] == "kind ticket.triage: changed (output_schema); prompt version 2"
    version = Kind.objects.get().prompt_version
    assert version is not None
    assert version.output_schema["const"] is True


def test_a_handler_kind_needs_no_prompt_and_has_no_version() -> None:
    load(PROVIDER + KIND)
    load('[[kind]]\nname = "ticket.triage"\nhandler = "triage"\n')
    kind = Kind.objects.get()
    assert kind.handler == "triage"
    assert (kind.provider, kind.prompt, kind.prompt_version) == (None, "", None)
    back = lines(PROVIDER + KIND)
    assert back[1].endswith("; prompt version 2")


def test_kinds_and_providers_not_named_stay() -> None:
    load(PROVIDER + KIND)
    load('[[provider]]\nname = "other"\nbase_url = "https://api.example.com/v1"\n')
    assert set(Provider.objects.values_list("pk", flat=True)) == {"local", "other"}
    assert Kind.objects.get().max_attempts == 5


def test_pause_and_hold_are_kept() -> None:
    load(PROVIDER + KIND)
    lifecycle.pause_kind("ticket.triage", by="ana", reason="looking")
    lifecycle.hold_provider("local", by="ana", reason="bad key", code="AI_AUTH_FAILED")
    load(PROVIDER.replace("600", "60") + KIND.replace("Sort", "Order"))
    assert Kind.objects.get().pause_reason == "looking"
    assert Provider.objects.get().hold_reason == "bad key"
    assert Provider.objects.get().requests_per_minute == 60


def test_unfinished_tasks_move_to_the_new_provider() -> None:
    load(PROVIDER + KIND)
    task = lifecycle.submit("ticket.triage", {"text": "a"})
    done = lifecycle.submit("ticket.triage", {"text": "b"})
    lifecycle.cancel([done.pk], actor="ana")
    load('[[provider]]\nname = "other"\nbase_url = "http://h/v1"\n' + KIND.replace('"local"', '"other"'))
    assert lifecycle.realign() == 1
    assert Task.objects.get(pk=task.pk).lane.provider_id == "other"
    assert Task.objects.get(pk=done.pk).lane.provider_id == "local"


def test_all_problems_are_told_at_once_and_nothing_is_written() -> None:
    found = problems(
        PROVIDER
        + """
[[kind]]
name = "no spaces please"
provider = "lokal"
model = "m"
prompt = "{% if %}"
max_attempts = 0
jiter = 0.5
output_schema = '{"type": 3}'
[[kind]]
name = "empty"
[[kind]]
handler = "h"
initial_interval_seconds = 60
[[error_code]]
code = "MY CODE"
level = "L9"
[[rule]]
code = "AI_RATE_LIMITD"
message = "slow"
[[rule]]
code = "AI_RATE_LIMITED"
message = "("
[[rule]]
code = "AI_RATE_LIMITED"
"""
    )
    assert [problem.split(":")[0] for problem in found] == [
        *("line 9", "line 10", "line 12", "line 13", "line 14", "line 15"),  # the first kind
        *("line 16", "line 16", "line 16"),
        *("line 18", "line 18"),
        *("line 22", "line 23"),
        *("line 25", "line 29", "line 30"),
    ]
    told = "\n".join(found)
    assert "there is no provider 'lokal'; did you mean local?" in told
    assert "line 12: kind no spaces please: prompt: is no usable template: " in told
    assert "max_attempts: It is 0; it must be from 1 to 1000." in told
    assert "there is no key 'jiter'; did you mean jitter?" in told
    assert "output_schema: the schema is wrong at type" in told
    assert "line 16: kind empty: prompt: is missing; a kind without a handler is run by its prompt" in told
    assert "line 18: kind number 3: name: is missing" in told
    assert "maximum_interval_seconds: is 30, less than initial_interval_seconds, which is 60" in told
    assert "level: is 'L9'; it must be one of L1, L2, L3" in told
    assert "there is no error code 'AI_RATE_LIMITD'; did you mean AI_RATE_LIMITED" in told
    assert "line 29: rule number 2: message: '(' is no re2 pattern" in told
    assert "line 30: rule number 3: the rule has no condition" in told
    assert not Provider.objects.exists()
    assert not Kind.objects.exists()


def test_a_key_pasted_as_its_variable_is_refused_and_not_repeated() -> None:
    (problem,) = problems(PROVIDER.replace("LOCAL_KEY", "sk-live-1234567890"))
    assert problem == (
        "line 5: provider local: api_key_env: Give the name of an environment variable, such as OPENAI_API_KEY, not the"
        " key."
    )


@pytest.mark.parametrize(
    "url", ["ollama:11434/v1", "ftp://host/v1", "https://me:secret@host/v1", "http://host/v1?key=secret", "http:///v1"]
)
def test_an_address_that_is_none(url: str) -> None:
    (problem,) = problems(PROVIDER.replace("http://ollama:11434/v1", url))
    assert problem.startswith("line 4: provider local: base_url: ")
    assert "secret" not in problem


def test_a_changed_address_is_no_longer_the_simulated_one() -> None:
    Provider.objects.create(name="local", base_url="http://127.0.0.1:9/v1", simulated=True)
    load(PROVIDER)
    assert Provider.objects.get().simulated is False


def test_settings_that_are_only_stored_are_named() -> None:
    report = load(PROVIDER + KIND + "stall_seconds = 20\nfallback_result = '\"sorry\"'\n")
    assert report.notes == [
        "kind ticket.triage: stored, not yet enforced: fallback_result",
    ]
    kind = Kind.objects.get()
    assert (kind.stall_seconds, kind.fallback_result) == (20.0, "sorry")


class TestErrorCodes:
    """A built-in code keeps its built-in values for the keys that the file leaves out."""

    def test_a_code_of_ones_own(self) -> None:
        assert lines('[[error_code]]\ncode = "MY_OUTAGE"\nretryable = true\nmax_attempts = 9\n') == [
            "error code MY_OUTAGE: created"
        ]
        code = ErrorCode.objects.get(pk="MY_OUTAGE")
        assert (code.builtin, code.level, code.retryable, code.max_attempts) == (False, "L1", True, 9)

    def test_a_built_in_code_changes_only_where_the_file_says(self) -> None:
        text = '[[error_code]]\ncode = "AI_RATE_LIMITED"\nmax_attempts = 2\n'
        assert lines(text) == ["error code AI_RATE_LIMITED: changed (max_attempts)"]
        code = ErrorCode.objects.get(pk="AI_RATE_LIMITED")
        assert (code.max_attempts, code.changed_fields) == (2, ["max_attempts"])
        assert (code.retryable, code.uses_budget, code.title) == (True, False, CODES["AI_RATE_LIMITED"].title)
        assert lines(text) == ["error code AI_RATE_LIMITED: unchanged"]

    def test_leaving_the_key_out_brings_the_built_in_value_back(self) -> None:
        load('[[error_code]]\ncode = "AI_RATE_LIMITED"\nretryable = false\n')
        load('[[error_code]]\ncode = "AI_RATE_LIMITED"\n')
        code = ErrorCode.objects.get(pk="AI_RATE_LIMITED")
        assert (code.retryable, code.changed_fields) == (True, [])

    def test_the_word_kind_lets_the_kind_decide(self) -> None:
        text = '[[error_code]]\ncode = "AI_MODEL_LOADING"\ninitial_interval_seconds = "kind"\n'
        assert lines(text) == ["error code AI_MODEL_LOADING: changed (initial_interval_seconds)"]
        code = ErrorCode.objects.get(pk="AI_MODEL_LOADING")
        assert (code.initial_interval_seconds, code.maximum_interval_seconds) == (None, 60.0)
        assert code.changed_fields == ["initial_interval_seconds"]
        assert lines(text) == ["error code AI_MODEL_LOADING: unchanged"]

    def test_another_word_does_not(self) -> None:
        assert problems('[[error_code]]\ncode = "AI_MODEL_LOADING"\nmax_attempts = "kin"\nretryable = "kind"\n') == [
            'line 3: error code AI_MODEL_LOADING: max_attempts: is "kin"; it must be a whole number, without quotes, or'
            ' "kind": the kind decides',
            'line 4: error code AI_MODEL_LOADING: retryable: is "kind"; it must be true or false, without quotes',
        ]


class TestRules:
    """Rules have no names: a file with any replaces them all, in its order."""

    FIRST = '[[rule]]\ncode = "AI_OVERLOADED"\nmessage = "queue is full"\n'
    SECOND = '[[rule]]\ncode = "AI_INPUT_INVALID"\nhttp_status = "422"\nkind = "ticket.triage"\nnote = "ours"\n'

    def messages(self) -> list[tuple[str, str]]:
        return list(ErrorRule.objects.values_list("code_id", "message"))

    def test_in_the_order_of_the_file(self) -> None:
        assert lines(self.FIRST + self.SECOND) == ["rules: 2 in place of 0"]
        assert self.messages() == [("AI_OVERLOADED", "queue is full"), ("AI_INPUT_INVALID", "")]
        assert lines(self.FIRST + self.SECOND) == ["rules: unchanged"]
        assert lines(self.SECOND + self.FIRST) == ["rules: 2 in place of 2"]
        assert self.messages() == [("AI_INPUT_INVALID", ""), ("AI_OVERLOADED", "queue is full")]

    def test_a_rule_that_stays_keeps_its_row(self) -> None:
        load(self.FIRST + self.SECOND)
        kept = ErrorRule.objects.get(code="AI_INPUT_INVALID").pk
        load(self.SECOND)
        assert [rule.pk for rule in ErrorRule.objects.all()] == [kept]

    def test_a_file_without_rules_leaves_them(self) -> None:
        load(self.FIRST)
        load(PROVIDER)
        assert self.messages() == [("AI_OVERLOADED", "queue is full")]

    def test_an_empty_list_removes_them(self) -> None:
        load(self.FIRST)
        assert lines("rule = []\n") == ["rules: 0 in place of 1"]
        assert self.messages() == []

    def test_a_rule_may_name_a_code_of_the_same_file(self) -> None:
        load('[[rule]]\ncode = "MY_CODE"\nbody = "x"\n[[error_code]]\ncode = "MY_CODE"\n')
        assert self.messages() == [("MY_CODE", "")]


@pytest.mark.django_db(transaction=True)
def test_a_pause_that_comes_during_the_load_is_not_undone(second_connection: psycopg.Connection) -> None:
    """The kind's row is locked before it is read, so the pause waits and then stands."""
    load(PROVIDER + KIND)
    with transaction.atomic():
        load(PROVIDER + KIND.replace("Sort", "Order"))
        second_connection.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            second_connection.execute("UPDATE tasks_kind SET paused_at = now() WHERE name = 'ticket.triage'")
        # a submit, which only refers to the kind, does not wait
        second_connection.execute("SELECT 1 FROM tasks_kind WHERE name = 'ticket.triage' FOR KEY SHARE")
    second_connection.execute("UPDATE tasks_kind SET paused_at = now() WHERE name = 'ticket.triage'")
    assert Kind.objects.get().paused_at is not None


def test_kinds_that_never_changed_their_provider_look_at_no_task() -> None:
    load(PROVIDER + KIND)
    kind = Kind.objects.get()
    kind.max_attempts = 7
    with connection.execute_wrapper(_refuse_task_table):
        kind.save()


def test_an_address_is_refused_as_in_the_admin() -> None:
    assert problems('[[provider]]\nname = "a"\nbase_url = "https://llm.example/v1/chat/completions/"\n') == [
        "line 3: provider a: base_url: Leave out /chat/completions: every call adds it."
    ]


@pytest.mark.parametrize("variable", ["SECRET_KEY", "DATABASE_URL_FILE", "REDRIVE_OPERATOR_PASSWORD"])
def test_a_provider_gets_no_secret_of_the_installation(variable: str) -> None:
    assert problems(PROVIDER.replace("LOCAL_KEY", variable)) == [
        f"line 5: provider local: api_key_env: {variable} is a setting of Redrive or of the system, and is sent to no"
        " provider. Keep the key in a variable of its own, such as ACME_API_KEY."
    ]


def test_a_kind_without_tasks_can_be_deleted() -> None:
    load(PROVIDER + KIND)
    Kind.objects.get().delete()
    assert not PromptVersion.objects.exists()


def _refuse_task_table(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
    assert '"tasks_task"' not in sql
    return execute(sql, params, many, context)
