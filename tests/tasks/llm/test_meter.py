"""The meter, and that no template and no schema makes more work than it allows."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from tasks.errors import ConfigurationFault, InputInvalid
from tasks.llm import meter
from tasks.llm.meter import Exhausted, in_thread, metered, off_loop, spend
from tasks.llm.payload import is_large
from tasks.llm.problems import problems
from tasks.llm.prompt import check_template, render
from tasks.llm.request import PromptSpec
from tasks.llm.schema import check_schema
from tests.chat import chat
from tests.provider import ScriptedProvider

MANY = list(range(3_000))


def filled(text: str, payload: Any) -> str:
    (message,) = render(PromptSpec("m", "", text), payload)
    return message["content"]


def steps_of(work: Any) -> int:
    """The steps that a piece of work takes."""
    with metered(10**9, 60):
        work()
        running = meter._meter.get()
        assert running is not None
        return 10**9 - running.steps


def test_work_is_counted_only_while_a_meter_runs() -> None:
    spend(10**9)
    with pytest.raises(Exhausted), metered(10, 60):
        for _ in range(11):
            spend()
    spend(10**9)


def test_brief_work_stays_in_the_loop_and_other_work_goes_to_a_thread() -> None:
    threads = []

    def work(steps: int) -> None:
        threads.append(threading.current_thread())
        spend(steps)

    asyncio.run(off_loop(work, 10))
    assert threads == [threading.main_thread()]
    asyncio.run(off_loop(work, meter.BRIEF[0] + 1))
    assert threads[1] is threading.main_thread()
    assert threads[2] is not threading.main_thread()
    with pytest.raises(Exhausted):
        asyncio.run(in_thread(work, meter.FULL[0] + 1))


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in l %}{% for b in l %}{% for c in l %}x{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in l %}{% for b in l %}{% for c in l %}{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in l %}{% for b in l %}{% if b in l %}{% endif %}{% endfor %}{% endfor %}",
        "{% for a in l %}{% for b in l %}{% cycle 'a' 'b' as c silent %}{% endfor %}{% endfor %}",
        "{% for a in l %}{% regroup l by x as g %}{% endfor %}",
    ],
)
def test_loops_in_each_other_end(text: str) -> None:
    with pytest.raises(Exhausted), metered(50_000, 60):
        filled(text, {"l": MANY})


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in l %}{{ x }}{% endfor %}",
        "{% for a in l %}{{ payload }}{% endfor %}",
        "{% for a in l %}{% firstof x %}{% endfor %}",
        "{{ l|join:x }}",
        "{% with a=x|add:x %}{% with b=a|add:a %}{% with c=b|add:b %}" + "{% endwith %}" * 3,
        "{{ x" + "|urlencode" * 90 + "|length }}",
        "{{ x|force_escape|force_escape }}",
        "{% if x|add:x|add:x|add:x|add:x %}yes{% endif %}",
        "{% filter force_escape %}{% filter force_escape %}{{ x }}{% endfilter %}{% endfilter %}",
    ],
)
def test_a_prompt_has_an_end(text: str) -> None:
    with pytest.raises(InputInvalid, match="comes to more than 4194304 characters"):
        filled(text, {"l": MANY, "x": "%&" * 500_000})


@pytest.mark.parametrize("name", ["center", "ljust", "rjust"])
@pytest.mark.parametrize("width", ["999999999", "'9_999_999_999'", "n"])
@pytest.mark.parametrize(
    "shape", ["{{{{ x|{0} }}}}", "{{% filter {0} %}}x{{% endfilter %}}", "{{% if x|{0} %}}{{% endif %}}"]
)
def test_no_text_is_made_wide(name: str, width: str, shape: str) -> None:
    with pytest.raises(InputInvalid, match=f"the filter {name} makes nothing wider than 10000 characters"):
        filled(shape.format(f"{name}:{width}"), {"x": "a", "n": 10**12})


@pytest.mark.parametrize("use", ["stringformat:'999999999d'", "stringformat:'.99999999f'", "floatformat:'-99999999'"])
def test_no_number_is_made_wide(use: str) -> None:
    with pytest.raises(InputInvalid, match="makes nothing wider"):
        filled(f"{{{{ x|{use} }}}}", {"x": 5})
    assert filled("{{ x|stringformat:'05d' }} {{ x|floatformat:2 }} {{ 'a'|ljust:3 }}|", {"x": 5}) == "00005 5.00 a  |"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{% if a %}" * 900 + "{% endif %}" * 900, "line 1: tags are nested more than 50 deep"),
        ("x\n{% if " + " and ".join("a" * 200) + " %}{% endif %}", "line 2: a tag has more than 100 words"),
        ("x\n" + "{%" * 5_000, "line 2 has more than 100 {% without %}"),
        ("{{" * 5_000, "line 1 has more than 100 {{ without }}"),
        ("x" * 300_000, "it has 300000 characters; at most 262144 are taken"),
        ("{% lorem 99999999 p %}", "Invalid block tag"),
        ("{{ x|truncatechars_html:9 }}", "Invalid filter"),
        ("{{ payload._raw }}", "may not begin with underscores"),
        ("{{ payload.__class__ }}", "may not begin with underscores"),
    ],
)
def test_what_no_template_may_have_is_refused_when_it_is_saved(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="^" + said.replace("{", r"\{") if said.startswith("line") else said) as caught:
        check_template(text)
    assert len(str(caught.value)) < 200


def test_the_deepest_template_that_is_taken_can_be_filled_in() -> None:
    text = "{% for b in a %}" * 49 + "{% if " + " and ".join("a" * 50) + " %}x{% endif %}" + "{% endfor %}" * 49
    check_template(text)
    assert filled(text, {"a": [1]}) == "x"


@pytest.mark.parametrize("name", ["raw", "clear", "pop", "update", "get", "index", "format_map"])
def test_a_template_reaches_nothing_but_the_payload(name: str) -> None:
    payload = {"a": [3, 1, 2], "t": "x"}
    for path in ("payload", "payload.a", "payload.t"):
        with pytest.raises(InputInvalid):
            filled(f"{{{{ {path}.{name} }}}}", payload)
    assert payload == {"a": [3, 1, 2], "t": "x"}


def test_what_is_large() -> None:
    assert not is_large({"a": [1, 2, "x" * 1_000]})
    assert is_large({"a": [["x" * 70_000]]})
    assert is_large([[[0] * 100] * 100])
    assert is_large([0] * 10**6)


# --- schemas ---------------------------------------------------------------------------------------------------------
def exploding(levels: int) -> dict[str, Any]:
    """Each alternative leads to two more: 2^levels ways to fail."""
    both = {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**both, f"a{levels}": {"type": "string"}}, "$ref": "#/$defs/a0"}


def test_unique_items_take_steps_by_their_number_and_not_by_its_square() -> None:
    few, many = ([{"a": n} for n in range(count)] for count in (1_000, 10_000))
    ratio = steps_of(lambda: problems(many, {"uniqueItems": True})) / steps_of(
        lambda: problems(few, {"uniqueItems": True})
    )
    assert ratio < 20


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([1, True], True),
        ([0, False, None, "", [], {}], True),
        ([1, 1.0], False),
        ([[1], [1.0]], False),
        ([{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], False),
        ([{"a": [True]}, {"a": [1]}], True),
        (["1", 1], True),
        ([1e15, 10**15], False),
        ([0.5, 0.5], False),
    ],
)
def test_which_items_are_the_same(items: list[Any], unique: bool) -> None:
    assert (problems(items, {"uniqueItems": True}) == []) is unique


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (exploding(40), 5),
        ({**exploding(40), "unevaluatedProperties": False}, {"q": 1}),
        ({"patternProperties": {f"^a{n}$": {} for n in range(500)}}, {f"k{n}": 1 for n in range(500)}),
    ],
)
def test_a_schema_that_explodes_ends(schema: dict[str, Any], value: Any) -> None:
    check_schema(json.dumps(schema))
    with pytest.raises(Exhausted), metered(50_000, 60):
        problems(value, schema)


def test_a_schema_that_explodes_fails_the_attempt_and_says_why(
    attempt: Any, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "FULL", (50_000, 60.0))
    provider.script(lambda request, n: chat(request, "5"))
    done = attempt(output_schema=exploding(40))
    assert isinstance(done.error, ConfigurationFault)
    assert "steps to check this answer" in str(done.error)
    assert len(done.calls) == 1


def test_a_template_that_explodes_fails_the_attempt_before_any_call(
    attempt: Any, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "FULL", (50_000, 60.0))
    text = "{% for a in l %}{% for b in l %}x{% endfor %}{% endfor %}"
    done = attempt(prompt=text, payload={"l": MANY})
    assert isinstance(done.error, InputInvalid)
    assert "filling the prompt in takes more than" in str(done.error)
    assert provider.requests == []


@pytest.mark.parametrize("levels", [51, 150, 5_000])
def test_a_schema_that_is_nested_too_deeply_is_refused_when_it_is_saved(levels: int) -> None:
    text = '{"properties": {"a": ' * levels + "{}" + "}}" * levels
    with pytest.raises(ValueError, match="the schema is nested too deeply"):
        check_schema(text)


def test_the_deepest_schema_that_is_taken_can_be_used() -> None:
    schema: dict[str, Any] = {"type": "string"}
    value: Any = 5
    for _level in range(49):
        schema, value = {"properties": {"a": schema}}, {"a": value}
    check_schema(json.dumps(schema))
    (problem,) = problems(value, schema)
    assert problem.message == "5 is not of type 'string'"


def test_of_many_allowed_values_some_are_named() -> None:
    (problem,) = problems("x", {"enum": [f"v{n}" for n in range(10_000)]})
    assert str(problem).endswith('"v49" and 9950 more)')
    assert len(str(problem)) < 2_000
