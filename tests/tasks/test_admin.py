"""The configuration in the admin: who may, what is refused and why, what is written besides."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.forms.models import model_to_dict
from django.test import Client, RequestFactory
from django.urls import reverse

from tasks import lifecycle
from tasks.catalogue_rows import builtin_fields
from tasks.engine.catalogue import load_catalogue
from tasks.errors.codes import CODES
from tasks.models import ErrorCode, ErrorRule, Kind, Lane, OperatorAction, Provider
from tasks.retry import RetryPolicy, backoff_seconds
from tests.factories import make_kind, make_provider, make_task, make_user

pytestmark = pytest.mark.django_db
MODELS = {"provider": Provider, "kind": Kind, "errorcode": ErrorCode, "errorrule": ErrorRule}


@pytest.fixture
def carl() -> Client:
    """The client of somebody who may configure and has no permission on any model."""
    return client_of("carl", "configure")


def client_of(name: str, group: str | None) -> Client:
    """A signed-in client."""
    client = Client()
    client.force_login(make_user(name, group))
    return client


def form_of(obj: Any, **changes: Any) -> dict[str, Any]:
    """What the change form of ``obj`` sends when only ``changes`` were made."""
    values = {name: value for name, value in model_to_dict(obj).items() if value is not None and value is not False}
    values = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in values.items()}
    return {"safe_to_rerun": "unknown", **values, **changes}


def change(client: Client, obj: Any, **changes: Any) -> list[str]:
    """Send the change form; the complaints, empty once it is saved."""
    url = reverse(f"admin:tasks_{obj._meta.model_name}_change", args=[admin.utils.quote(obj.pk)])
    return _sent(client, url, form_of(obj, **changes))


def add(client: Client, table: str, **values: Any) -> list[str]:
    """Send the add form; the complaints, empty once it is saved."""
    fresh = form_of(MODELS[table]())
    return _sent(client, reverse(f"admin:tasks_{table}_add"), {**fresh, **values})


def _sent(client: Client, url: str, data: dict[str, Any]) -> list[str]:
    response = client.post(url, {name: value for name, value in data.items() if value is not None})
    if response.status_code == 302:
        return []
    assert response.status_code == 200
    return [str(fault) for faults in response.context["errors"] for fault in faults]


def last_audit() -> OperatorAction:
    """The newest audit row."""
    found = OperatorAction.objects.first()
    assert found is not None
    return found


# --- who may -------------------------------------------------------------------------------------------------------
PAGES = [
    "/admin/",
    *(f"/admin/tasks/{model}/" for model in MODELS),
    "/admin/tasks/kind/add/",
    "/admin/tasks/promptversion/",
]


@pytest.mark.parametrize("path", PAGES)
def test_one_permission_opens_the_configuration(path: str, carl: Client) -> None:
    assert carl.get(path).status_code == 200


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("group", ["view", "operate", None])
def test_without_it_nothing_opens(path: str, group: str | None) -> None:
    response = client_of("ana", group).get(path, follow=True)
    assert response.status_code == 403


def test_who_is_not_signed_in_comes_to_the_console_s_door() -> None:
    response = Client().get("/admin/tasks/kind/", follow=True)
    assert response.redirect_chain[-1][0] == "/login/?next=%2Fadmin%2Ftasks%2Fkind%2F"


# --- every setting is explained --------------------------------------------------------------------------------------
@pytest.mark.parametrize("model", MODELS.values())
def test_every_setting_has_an_explanation(model: Any, rf: RequestFactory) -> None:
    request = rf.get("/")
    request.user = make_user("carl", "configure")
    shown = admin.site.get_model_admin(model)
    form = shown.get_form(request, None, change=False)
    fields = [name for name in flatten_fieldsets(shown.get_fieldsets(request)) if name in form.base_fields]
    assert len(fields) > 3
    assert [name for name in fields if not form.base_fields[name].help_text] == []


@pytest.mark.parametrize("model", MODELS.values())
def test_no_setting_is_left_out(model: Any, rf: RequestFactory) -> None:
    request = rf.get("/")
    request.user = make_user("carl", "configure")
    shown = set(flatten_fieldsets(admin.site.get_model_admin(model).get_fieldsets(request)))
    editable = {field.name for field in model._meta.fields if field.editable and not field.auto_created}
    assert editable - shown == set()


# --- providers -------------------------------------------------------------------------------------------------------
def test_a_provider_is_added_with_an_audit_row(carl: Client) -> None:
    assert add(carl, "provider", name="acme", base_url="http://ollama:11434/v1", api_key_env="ACME_KEY") == []
    assert Provider.objects.get(pk="acme").base_url == "http://ollama:11434/v1"
    row = last_audit()
    assert (row.username, row.action, row.target_type, row.target_id) == ("carl", "add_provider", "provider", "acme")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("base_url", "ftp://acme", "Give an address that starts with http:// or https:// and a host."),
        ("base_url", "https://acme/v1/chat/completions", "Leave out /chat/completions: every call adds it."),
        ("api_key_env", "sk-abc-123", "Give the name of an environment variable"),
        (
            "api_key_env",
            "SECRET_KEY",
            "SECRET_KEY is a setting of Redrive or of the system, and is sent to no provider.",
        ),
        ("api_key_env", "REDRIVE_OPERATOR_PASSWORD", "REDRIVE_OPERATOR_PASSWORD is a setting of Redrive"),
    ],
)
def test_a_provider_s_mistakes_are_told(field: str, value: str, said: str, carl: Client) -> None:
    (complaint,) = add(carl, "provider", **{"name": "acme", "base_url": "http://a/v1", field: value})
    assert complaint.startswith(said)
    assert not Provider.objects.exists()


def test_a_hold_that_comes_while_the_form_is_open_stays(carl: Client) -> None:
    provider = make_provider()
    lifecycle.hold_provider("acme", by="ana", reason="bad key")
    assert change(carl, provider, base_url="http://127.0.0.1:9/v2") == []
    provider.refresh_from_db()
    assert (provider.base_url, provider.hold_reason) == ("http://127.0.0.1:9/v2", "bad key")


def test_the_demo_s_mark_belongs_to_its_address(carl: Client) -> None:
    provider = make_provider(simulated=True)
    assert change(carl, provider, base_url="https://api.example.com/v1") == []
    provider.refresh_from_db()
    assert provider.simulated is False


def test_a_provider_that_kinds_use_is_not_deleted(carl: Client) -> None:
    make_kind("refund")
    make_kind("triage")
    assert said_on_delete(carl, "provider", "acme") == (
        "Provider acme is used by refund, triage. Give these kinds another provider first."
    )


def test_a_provider_with_history_is_not_deleted(carl: Client) -> None:
    kind = make_kind()
    make_task(kind=kind)
    kind.provider = make_provider("other")
    Kind.objects.filter(pk=kind.pk).update(provider=kind.provider)
    assert said_on_delete(carl, "provider", "acme").startswith("Provider acme has tasks in its history")


def test_an_unused_provider_is_deleted_with_its_empty_lanes(carl: Client) -> None:
    kind = make_kind()
    kind.provider = make_provider("other")
    kind.save()
    assert Lane.objects.filter(provider="acme").exists()
    assert said_on_delete(carl, "provider", "acme") == "The provider “acme” was deleted successfully."
    assert not Provider.objects.filter(pk="acme").exists()
    assert last_audit().action == "delete_provider"


def said_on_delete(client: Client, model: str, key: str) -> str:
    """Confirm a delete; what the next page says."""
    url = reverse(f"admin:tasks_{model}_delete", args=[admin.utils.quote(key)])
    page = client.post(url, {"post": "yes"}, follow=True).content.decode()
    (told,) = re.findall(r'<ul class="messagelist">(.*?)</ul>', page, re.DOTALL)
    newest = re.findall(r"<li[^>]*>(.*?)</li>", told, re.DOTALL)[-1]
    return html.unescape(re.sub(r"<[^>]+>", "", newest)).strip()


# --- kinds -----------------------------------------------------------------------------------------------------------
def test_a_prompt_kind_is_added_with_its_first_version(carl: Client) -> None:
    make_provider()
    schema = '{"type": "object", "properties": {"urgency": {"type": "integer"}}}'
    said = add(carl, "kind", name="triage", provider="acme", model="m-1", prompt="{{ text }}", output_schema=schema)
    assert said == []
    kind = Kind.objects.get(pk="triage")
    assert kind.output_schema == json.loads(schema)
    assert kind.prompt_version is not None
    assert kind.prompt_version.number == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prompt": "{% if %}"}, "No usable template: line 1:"),
        ({"system_prompt": "{{ text|nofilter }}"}, "No usable template:"),
        ({"prompt": "{% include 'x' %}"}, "No usable template:"),
        ({"prompt": ""}, "A kind without a handler is run by its prompt and needs this."),
        ({"provider": ""}, "A kind without a handler is run by its prompt and needs this."),
        ({"model": ""}, "A kind without a handler is run by its prompt and needs this."),
        ({"output_schema": '{"type": "nonsense"}'}, "The schema is wrong at"),
        ({"output_schema": "{"}, "This is not JSON:"),
        ({"output_schema": '{"title": "\\u0000"}'}, "The JSON holds a NUL character"),
        ({"output_schema": "[1]"}, "The schema must be a JSON object."),
        ({"initial_interval_seconds": "60"}, "The longest wait is shorter than the first."),
        ({"max_attempts": "0"}, "It is 0; it must be from 1 to 1000."),
        ({"jitter": "2"}, "It is 2; it must be from 0 to 1."),
    ],
)
def test_a_kind_that_could_not_run_is_refused_with_the_reason(changes: dict[str, str], said: str, carl: Client) -> None:
    kind = make_kind()
    complaints = change(carl, kind, **changes)
    assert len(complaints) == 1, complaints
    assert complaints[0].startswith(said)
    assert Kind.objects.get(pk=kind.pk).updated_at == kind.updated_at


def test_a_change_of_the_prompt_makes_a_version_and_an_audit_row_with_both_texts(carl: Client) -> None:
    kind = make_kind()
    assert change(carl, kind, prompt="Sort this: {{ text }}", max_attempts="5") == []
    kind.refresh_from_db()
    assert kind.prompt_version is not None
    assert (kind.prompt_version.number, kind.max_attempts) == (2, 5)
    row = last_audit()
    assert (row.action, row.target_id) == ("change_kind", "ticket.triage")
    assert row.data["changes"] == {"prompt": ["{{ text }}", "Sort this: {{ text }}"], "max_attempts": ["3", "5"]}


def test_a_secret_in_a_changed_text_is_not_repeated_in_the_audit(carl: Client) -> None:
    kind = make_kind()
    assert change(carl, kind, prompt="key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD {{ text }}") == []
    assert "abcdefghijklmnop" not in json.dumps(last_audit().data)


def test_saving_without_a_change_writes_nothing(carl: Client) -> None:
    kind = make_kind()
    assert change(carl, kind) == []
    assert Kind.objects.get(pk=kind.pk).updated_at == kind.updated_at
    assert not OperatorAction.objects.filter(action="change_kind").exists()


def test_a_pause_that_comes_while_the_form_is_open_stays(carl: Client) -> None:
    kind = make_kind()
    lifecycle.pause_kind(kind.pk, by="ana", reason="a bad prompt")
    assert change(carl, kind, max_attempts="4") == []
    kind.refresh_from_db()
    assert (kind.max_attempts, kind.paused_by) == (4, "ana")


def test_waiting_tasks_move_along_with_the_provider(carl: Client) -> None:
    kind = make_kind()
    task = make_task(kind=kind)
    make_provider("other")
    assert change(carl, kind, provider="other") == []
    assert lifecycle.realign() == 1
    task.refresh_from_db()
    assert task.lane.provider_id == "other"


def test_a_kind_with_tasks_is_not_deleted(carl: Client) -> None:
    make_task()
    assert said_on_delete(carl, "kind", "ticket.triage").startswith(
        "Kind ticket.triage has tasks and cannot be deleted: they would lose what they are."
    )
    assert Kind.objects.filter(pk="ticket.triage").exists()


def test_a_kind_without_tasks_is_deleted_with_its_versions(carl: Client) -> None:
    make_kind()
    assert said_on_delete(carl, "kind", "ticket.triage") == "The kind “ticket.triage” was deleted successfully."
    assert not Kind.objects.exists()


def test_the_name_of_a_kind_stays(carl: Client) -> None:
    kind = make_kind()
    assert change(carl, kind, name="other", max_attempts="4") == []
    assert list(Kind.objects.values_list("name", "max_attempts")) == [("ticket.triage", 4)]


def test_many_kinds_are_never_deleted_by_one_click(carl: Client) -> None:
    make_kind()
    page = carl.get("/admin/tasks/kind/").content.decode()
    assert "delete_selected" not in page


def test_versions_are_read_and_never_changed(carl: Client) -> None:
    kind = make_kind()
    assert kind.prompt_version is not None
    url = f"/admin/tasks/promptversion/{kind.prompt_version.pk}/change/"
    assert "{{ text }}" in carl.get(url).content.decode()
    assert carl.post(url, {"prompt": "x"}).status_code == 403
    assert carl.get("/admin/tasks/promptversion/add/").status_code == 403
    assert carl.get(url.replace("change", "delete")).status_code == 403


# --- codes and rules -------------------------------------------------------------------------------------------------
def test_a_changed_field_of_a_built_in_code_is_the_operator_s(carl: Client) -> None:
    code = ErrorCode.objects.get(pk="AI_MODEL_TIMEOUT")
    assert change(carl, code, max_attempts="2", runbook="Ask Bo.") == []
    code.refresh_from_db()
    assert (code.changed_fields, code.max_attempts) == (["max_attempts", "runbook"], 2)


def test_a_field_that_was_set_back_belongs_to_upgrades_again(carl: Client) -> None:
    code = ErrorCode.objects.get(pk="AI_MODEL_TIMEOUT")
    assert change(carl, code, max_attempts="2") == []
    code.refresh_from_db()
    assert change(carl, code, max_attempts="") == []
    code.refresh_from_db()
    assert code.changed_fields == []


def test_a_wait_that_was_cleared_is_the_kind_s_for_the_workers_too(carl: Client) -> None:
    code = ErrorCode.objects.get(pk="AI_MODEL_LOADING")
    policy = RetryPolicy(initial_interval_seconds=1.0, maximum_interval_seconds=30.0)

    def wait() -> float:
        return backoff_seconds(policy, 1, 0.0, load_catalogue().codes[code.pk])

    assert wait() == 5.0, "the built-in code waits longer than the kind"
    assert change(carl, code, initial_interval_seconds="") == []
    assert wait() == 1.0


def test_set_back_undoes_every_change_and_says_what_was(carl: Client) -> None:
    code = ErrorCode.objects.get(pk="AI_MODEL_TIMEOUT")
    change(carl, code, max_attempts="2", title="Slow")
    data = {"action": "set_back", "_selected_action": ["AI_MODEL_TIMEOUT", "AI_RATE_LIMITED"]}
    page = carl.post("/admin/tasks/errorcode/", data, follow=True).content.decode()
    assert "1 code was set back." in page
    code.refresh_from_db()
    assert code.changed_fields == []
    assert {name: getattr(code, name) for name in builtin_fields(CODES[code.pk])} == builtin_fields(CODES[code.pk])
    assert last_audit().data == {"was": {"max_attempts": "2", "title": "Slow"}}


def test_a_built_in_code_is_not_deleted(carl: Client) -> None:
    assert said_on_delete(carl, "errorcode", "AI_MODEL_TIMEOUT") == (
        "AI_MODEL_TIMEOUT is built in and cannot be deleted; change what it does instead."
    )


def test_an_own_code_is_deleted_once_no_rule_gives_it(carl: Client) -> None:
    assert add(carl, "errorcode", code="SHOP_CLOSED", title="The shop is closed") == []
    assert ErrorCode.objects.get(pk="SHOP_CLOSED").builtin is False
    rule = ErrorRule.objects.create(code_id="SHOP_CLOSED", message="closed")
    assert said_on_delete(carl, "errorcode", "SHOP_CLOSED").startswith("1 rule gives SHOP_CLOSED.")
    rule.delete()
    assert said_on_delete(carl, "errorcode", "SHOP_CLOSED").endswith("was deleted successfully.")


def test_a_code_is_one_word(carl: Client) -> None:
    (said,) = add(carl, "errorcode", code="SHOP CLOSED")
    assert said == "Letters, digits and underscores only, a letter first."


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"message": "("}, "'(' is no re2 pattern"),
        ({"message": "(?=x)"}, "'(?=x)' is no re2 pattern"),
        ({"http_status": "4O4"}, "'4O4' is neither a status"),
        ({}, "A rule needs at least one condition"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_with_the_reason(values: dict[str, str], said: str, carl: Client) -> None:
    complaints = add(carl, "errorrule", code="AI_OVERLOADED", position="1", enabled="on", **values)
    assert len(complaints) == 1, complaints
    assert complaints[0].startswith(said)
    assert not ErrorRule.objects.exists()


def test_a_rule_is_added_with_an_audit_row(carl: Client) -> None:
    assert add(carl, "errorrule", code="AI_OVERLOADED", position="1", enabled="on", message="busy|full") == []
    rule = ErrorRule.objects.get()
    assert (rule.code_id, rule.message) == ("AI_OVERLOADED", "busy|full")
    assert (last_audit().action, last_audit().target_id) == ("add_error_rule", str(rule.pk))


def test_a_rule_offers_every_code_in_a_plain_list(carl: Client) -> None:
    """One that screen readers name and that works without scripts."""
    page = carl.get("/admin/tasks/errorrule/add/").content.decode()
    assert '<option value="AI_OVERLOADED">AI_OVERLOADED</option>' in page
