"""Templates: what they see, what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasks.errors import ConfigurationFault, InputInvalid, classify
from tasks.errors.capture import capture
from tasks.llm.prompt import check_template, render
from tasks.llm.request import PromptSpec

TICKET = {
    "title": 'Can\'t log in & "stuck" <b>',
    "tags": ["login", "urgent", 3],
    "customer": {"name": "小明", "tier": None, "items": [1]},
    "price": 1234.5,
    "open": True,
    "rows": [{"k": "a", "n": 1}, {"k": "a", "n": 2}, {"k": "b", "n": 3}],
}


def prompt(text: str, payload: Any = TICKET) -> str:
    (message,) = render(PromptSpec("m", "", text), payload)
    return message["content"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("{{ title }}", 'Can\'t log in & "stuck" <b>'),
        ("{{ payload.title }}", 'Can\'t log in & "stuck" <b>'),
        ("{{ tags }}", '["login", "urgent", 3]'),
        ("{{ tags.1 }}", "urgent"),
        ("{{ tags|join:', ' }}", "login, urgent, 3"),
        ("{{ tags|join:', '|upper }}", "LOGIN, URGENT, 3"),
        ("{{ tags|slice:':2' }} {{ tags|length }} {{ tags|first }} {{ tags|last }}", '["login", "urgent"] 3 login 3'),
        ("{{ rows|dictsortreversed:'n'|first }}", '{"k": "b", "n": 3}'),
        ("{% if 'login' in tags and 'name' in customer %}yes{% endif %}", "yes"),
        ("{{ customer }}", '{"name": "小明", "tier": null, "items": [1]}'),
        ("{{ customer.name }}", "小明"),
        ("{{ customer.items }}", "[1]"),
        (
            "{{ customer|json }} {{ open|json }} {{ customer.tier|json }}",
            '{"name": "小明", "tier": null, "items": [1]} true null',
        ),
        ("{{ price }}", "1234.5"),
        ("{{ title|upper }}", 'CAN\'T LOG IN & "STUCK" <B>'),
        ("{% for tag in tags %}{{ forloop.counter }}:{{ tag }} {% endfor %}", "1:login 2:urgent 3:3 "),
        ("{% for key, value in payload.rows.0.items %}{{ key }}={{ value }} {% endfor %}", "k=a n=1 "),
        ("{% if customer.vip %}vip{% else %}-{% endif %}", "-"),
        ("{% if open and not missing %}yes{% endif %}", "yes"),
        ("{% if missing == 'a' %}yes{% else %}no{% endif %}", "no"),
        ("{{ missing|default:'none' }}", "none"),
        ("{{ missing|default_if_none:'none' }}", "none"),
        ("{{ customer.vip.since|default:title|lower }}", 'can\'t log in & "stuck" <b>'),
        ("{{ customer.tier }}", "None"),
        ("{{ customer.tier|default_if_none:'no tier' }}", "no tier"),
        ("{% firstof missing customer.name %}", "小明"),
        ("{% with name=customer.name %}{{ name }}{% endwith %}", "小明"),
        (
            "{% regroup rows by k as groups %}{% for g in groups %}{{ g.grouper }}{{ g.list|length }} {% endfor %}",
            "a2 b1 ",
        ),
        ("{% verbatim %}{{ raw }}{% endverbatim %}", "{{ raw }}"),
        ("{# a comment {{ missing }} #}ok", "ok"),
        ("{{ 'constant' }} {{ 5 }}", "constant 5"),
    ],
)
def test_what_a_template_prints(text: str, expected: str) -> None:
    check_template(text)

    assert prompt(text) == expected


@pytest.mark.parametrize(
    ("payload", "text", "expected"),
    [
        ("just text", "{{ payload }}", "just text"),
        (["a", {"b": 1}], "{{ payload }} {{ payload.1.b }}", '["a", {"b": 1}] 1'),
        (7, "{{ payload }}", "7"),
        (None, "{{ payload }}", "None"),
        (None, "{{ payload|json }}", "null"),
        ({"payload": "inner"}, "{{ payload.payload }}", "inner"),
        ({}, "{{ payload }}", "{}"),
        ({"forloop": 1, "True": 0}, "{{ forloop }}", "1"),
    ],
)
def test_any_json_value_is_a_payload(payload: Any, text: str, expected: str) -> None:
    assert prompt(text, payload) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{{ missing }}", "missing"),
        ("{{ customer.vip }}", "customer.vip"),
        ("{{ customer.vip.since }}", "customer.vip.since"),
        ("{{ tags.7 }}", "tags.7"),
        ("{{ missing|upper }}", "missing"),
        ("{{ missing|upper|default:'x' }}", "missing"),
        ("{{ title|default:missing }}", "missing"),
        ("{% for a in missing %}x{% endfor %}", "missing"),
        ("{% if open %}{% for a in customer.rows %}x{% endfor %}{% endif %}", "customer.rows"),
        ("{% with a=missing %}{{ a }}{% endwith %}", "missing"),
        ("{% regroup missing by k as groups %}", "missing"),
        ("{% if open %}{{ missing }}{% endif %}", "missing"),
        ("{{ payload.pop }}", "payload.pop"),
        ("{{ payload.get }}", "payload.get"),
        ("{{ title.replace }}", "title.replace"),
        ("{{ block.super }}", "block.super"),
        ("{{ settings.SECRET_KEY }}", "settings.SECRET_KEY"),
    ],
)
def test_a_missing_name_is_the_payloads_fault(text: str, name: str) -> None:
    check_template(text)

    with pytest.raises(InputInvalid) as caught:
        prompt(text)

    assert str(caught.value) == f"the prompt names {name}, which the payload does not have"
    verdict = classify(capture(caught.value))
    assert (verdict.code, verdict.retryable) == ("AI_INPUT_INVALID", False)


def test_an_empty_text_is_a_value() -> None:
    assert prompt("[{{ title }}{% for row in rows %}{% endfor %}]", {"title": "", "rows": []}) == "[]"


def test_nothing_is_not_sent() -> None:
    with pytest.raises(InputInvalid, match="the prompt is empty"):
        prompt("{% if missing %}x{% endif %}\n ")


def test_a_payload_nested_deeper_than_python_goes() -> None:
    payload: Any = {"deep": []}
    for _ in range(5_000):
        payload["deep"] = [payload["deep"]]

    assert prompt("ok", payload) == "ok"
    with pytest.raises(InputInvalid, match="RecursionError"):
        prompt("{{ deep }}", payload)


def test_a_branch_not_taken_needs_nothing() -> None:
    assert prompt("{% if missing %}{{ missing.name }}{% endif %}ok") == "ok"


def test_the_system_prompt_is_a_template_too() -> None:
    spec = PromptSpec("m", "For {{ customer.name }}.", "{{ title }}")

    assert [message["role"] for message in render(spec, TICKET)] == ["system", "user"]
    assert render(spec, TICKET)[0]["content"] == "For 小明."
    with pytest.raises(InputInvalid, match=r"the system prompt names customer\.name, which"):
        render(spec, {"title": "x"})


def test_a_payload_is_not_a_template() -> None:
    assert prompt("{{ title }}", {"title": "{{ payload }}{% now 'Y' %}"}) == "{{ payload }}{% now 'Y' %}"


def test_rendering_changes_no_payload() -> None:
    payload = {"rows": [3, 1, 2], "name": "x"}

    with pytest.raises(InputInvalid):
        prompt("{{ payload.clear }}", payload)
    with pytest.raises(InputInvalid):
        prompt("{{ rows.sort }}", payload)

    assert payload == {"rows": [3, 1, 2], "name": "x"}


def test_a_filter_that_cannot_work_on_the_value() -> None:
    with pytest.raises(InputInvalid, match=r"the prompt cannot be filled in: ValueError: Need 2 values"):
        prompt("{% for a, b in tags %}{{ a }}{% endfor %}", {"tags": [[1, 2, 3]]})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("one\ntwo {{ }}", "line 2: "),
        ("a\nb\n{% if x %}", "line 3: "),
        ("{% nonsense %}", "line 1: .*nonsense"),
        ("\n{{ a|nofilter }}", "line 2: Invalid filter: 'nofilter'"),
        ("\n\n{% for x %}{% endfor %}", "line 3: "),
        ("{% if a %}\n{{ b|nofilter }}\n{% endif %}", "line 2: "),
        ("{{ _private }}", "line 1: .*underscore"),
        ("{{ a.__class__ }}", "line 1: .*underscore"),
    ],
)
def test_a_broken_template_says_where(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_template(text)
    with pytest.raises(ConfigurationFault, match="the prompt is no usable template"):
        prompt(text)


@pytest.mark.parametrize(
    "text",
    [
        "{% load static %}",
        "{% load i18n from django %}",
        "{% include 'a.html' %}",
        "{% extends 'a.html' %}",
        "{% block a %}{% endblock %}",
        "{% url 'admin:index' %}",
        "{% csrf_token %}",
        "{% debug %}",
        "{% autoescape on %}{% endautoescape %}",
        "{% querystring %}",
    ],
)
def test_tags_that_reach_out_do_not_exist(text: str) -> None:
    with pytest.raises(ValueError, match="line 1: Invalid block tag"):
        check_template(text)


def test_no_template_file_is_ever_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Invalid block tag"):
        check_template(f"{{% include '{tmp_path}' %}}")
