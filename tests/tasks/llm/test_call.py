"""One attempt: mending, repairs, and the trail."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from tasks.errors import AnswerMalformed, AnswerTruncated, ConfigurationFault, InputInvalid, StreamCut
from tasks.llm.call import run_prompt
from tasks.llm.provider import Clients
from tasks.llm.request import PromptSpec, ProviderConfig, Result
from tests.chat import chat, completion, document, error
from tests.provider import Reply, ScriptedProvider
from tests.tasks.llm.conftest import GOOD, SCHEMA, Attempt

Run = Callable[..., Attempt]
VALUE = {"category": "bug", "urgency": 3}
WRONG = '{"category": "Bug", "urgency": 9}'


def answers(provider: ScriptedProvider, *texts: str) -> None:
    """Answer with these in turn, with the last for ever."""
    provider.script(lambda request, n: chat(request, texts[min(n, len(texts)) - 1]))


@pytest.mark.parametrize("streamed", [True, False])
def test_json_that_fits(provider: ScriptedProvider, attempt: Run, streamed: bool) -> None:
    answers(provider, GOOD)

    done = attempt(output_schema=SCHEMA, stream=streamed)

    assert done.result == Result(VALUE, 0, [])
    assert [call.mended for call in done.calls] == [[]]


def test_the_model_is_shown_the_schema(provider: ScriptedProvider, attempt: Run) -> None:
    answers(provider, GOOD)

    attempt(output_schema=SCHEMA, system_prompt="You sort tickets.")

    system = provider.requests[0].json["messages"][0]
    assert system["role"] == "system"
    assert system["content"].startswith("You sort tickets.\n\n")
    assert json.dumps(SCHEMA) in system["content"]


def test_mended_on_the_spot(provider: ScriptedProvider, attempt: Run) -> None:
    answers(provider, f"Here you are:\n```json\n{GOOD}\n```\nAnything else?")

    done = attempt(output_schema=SCHEMA)

    assert done.result == Result(VALUE, 0, ["code fence removed"])
    assert done.calls[0].mended == ["code fence removed"]
    assert done.calls[0].error is None
    assert len(provider.requests) == 1


def test_sent_back_with_field_expected_and_allowed(provider: ScriptedProvider, attempt: Run) -> None:
    answers(provider, WRONG, GOOD)

    done = attempt(output_schema=SCHEMA)

    assert done.result == Result(VALUE, 1, [])
    first, second = (request.json["messages"] for request in provider.requests)
    assert second[:2] == first
    assert second[2] == {"role": "assistant", "content": WRONG}
    said = second[3]["content"]
    assert second[3]["role"] == "user"
    assert "category: 'Bug' is not one of" in said
    assert 'allowed: "billing", "bug", "other"' in said
    assert "urgency: 9 is greater than the maximum of 5 (expected integer, at least 1, at most 5)" in said
    assert [(call.seq, call.error, call.answer) for call in done.calls] == [
        (1, "AnswerMalformed", WRONG),
        (2, None, GOOD),
    ]
    assert done.calls[1].messages == second


def test_a_second_repair_shows_the_latest_answer_only(provider: ScriptedProvider, attempt: Run) -> None:
    answers(provider, "no json at all", WRONG, GOOD)

    done = attempt(output_schema=SCHEMA)

    assert done.result.repairs == 2
    last = provider.requests[2].json["messages"]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "user"]
    assert last[2]["content"] == WRONG


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_never_more_repairs_than_allowed(provider: ScriptedProvider, attempt: Run, most: int) -> None:
    answers(provider, WRONG)

    done = attempt(output_schema=SCHEMA, max_repairs=most)

    assert type(done.error) is AnswerMalformed
    assert done.error.repairs == most
    assert len(provider.requests) == len(done.calls) == most + 1
    assert str(done.error).startswith("the answer does not fit the schema: category: 'Bug' is not one of")
    assert any("urgency" in problem for problem in done.error.problems)


def test_no_json_names_what_came(provider: ScriptedProvider, attempt: Run) -> None:
    answers(provider, "I am sorry, I cannot sort this.")

    done = attempt(output_schema=SCHEMA, max_repairs=0)

    assert "the answer is no JSON" in str(done.error)
    assert "I am sorry, I cannot sort this." in str(done.error)


def test_without_a_schema_text_is_left_alone(provider: ScriptedProvider, attempt: Run) -> None:
    text = "```json\n{}\n```\n"
    answers(provider, text)

    assert attempt().result == Result(text, 0, [])


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (error(500, "oops"), None),
        (document(completion(GOOD, "length")), AnswerTruncated),
        (document(completion(GOOD, None)), StreamCut),
        (document("<html>"), AnswerMalformed),
    ],
)
def test_a_fault_inside_a_repair_ends_the_attempt(
    provider: ScriptedProvider, attempt: Run, broken: Reply, kind: type[Exception] | None
) -> None:
    provider.script(lambda request, n: chat(request, WRONG) if n == 1 else broken)

    done = attempt(output_schema=SCHEMA)

    assert len(done.calls) == 2
    assert kind is None or type(done.error) is kind
    # What broke was the call, not the answer: it may be retried.
    assert getattr(done.error, "repairs", 0) == 0


def test_progress_goes_on_over_repairs(provider: ScriptedProvider, attempt: Run) -> None:
    answers(provider, WRONG, GOOD)

    done = attempt(output_schema=SCHEMA)

    assert done.progress == sorted(done.progress)
    assert done.progress[-1] == 8


def test_halves_of_surrogates_in_the_models_json(provider: ScriptedProvider, attempt: Run) -> None:
    answers(provider, r'{"text": "\ud83d\ude00 \ud83d"}')

    done = attempt(output_schema={"type": "object"})

    assert done.value == {"text": "😀 \ufffd"}
    assert done.result.mended == ["halves of surrogate pairs replaced"]


def test_halves_of_surrogates_can_be_sent_back(provider: ScriptedProvider, attempt: Run) -> None:
    body = rb'{"choices":[{"index":0,"message":{"content":"oh \ud83d"},"finish_reason":"stop"}]}'
    provider.script(lambda request, n: document(body) if n == 1 else chat(request, GOOD))

    done = attempt(output_schema=SCHEMA)

    assert done.value == VALUE
    assert provider.requests[1].json["messages"][2]["content"] == "oh \ufffd"


def test_the_loop_goes_on_while_a_large_answer_is_checked(provider: ScriptedProvider) -> None:
    text = json.dumps([{"n": n} for n in range(60_000)])
    answers(provider, text)
    spec = PromptSpec("m", "", "hello", output_schema={"type": "array", "items": {"required": ["n"]}})

    async def run() -> tuple[Result, list[float]]:
        ticks: list[float] = []
        clients = Clients()
        task = asyncio.create_task(
            run_prompt(
                clients=clients, provider=ProviderConfig("x", provider.base_url), spec=spec, payload={}, calls=[]
            )
        )
        while not task.done():
            ticks.append(time.monotonic())
            await asyncio.sleep(0.01)
        await clients.aclose()
        return await task, ticks

    result, ticks = asyncio.run(run())

    assert len(result.value) == 60_000
    answered = provider.requests[0].answered_at
    assert answered is not None
    assert len([tick for tick in ticks if tick > answered]) > 5
    assert max(later - earlier for earlier, later in pairwise(ticks)) < (ticks[-1] - answered) / 2


def test_faults_before_any_call_leave_no_record(provider: ScriptedProvider, attempt: Run) -> None:
    missing = attempt(prompt="Sort {{ ticket }}", payload={"other": 1})
    broken = attempt(prompt="Sort {% nonsense %}", payload={})

    assert type(missing.error) is InputInvalid
    assert type(broken.error) is ConfigurationFault
    assert missing.calls == broken.calls == []
    assert provider.requests == []


def test_chinese_all_the_way(provider: ScriptedProvider, attempt: Run) -> None:
    answers(provider, '{"类别": "故障"}', '{"类别": "缺陷"}')
    schema = {"type": "object", "properties": {"类别": {"enum": ["账单", "缺陷"]}}, "required": ["类别"]}

    done = attempt(output_schema=schema, prompt="分类：{{ 标题 }}", payload={"标题": "登录失败 😀"})

    assert done.value == {"类别": "缺陷"}
    assert provider.requests[0].json["messages"][1]["content"] == "分类：登录失败 😀"
    assert "类别: '故障' is not one of" in provider.requests[1].json["messages"][3]["content"]
    assert 'allowed: "账单", "缺陷"' in provider.requests[1].json["messages"][3]["content"]


def test_a_prompt_with_half_a_surrogate_is_sent(provider: ScriptedProvider, attempt: Run) -> None:
    answers(provider, "ok")

    attempt(prompt="{{ text }}", payload={"text": "a\ud83d"})

    assert provider.requests[0].json["messages"][0]["content"] == "a\ufffd"
