"""The staged faults: each has its ticket, clears in the second cycle, and holds nobody up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tasks.demo.answers import answer, best_match, first_sentence, off_topic, read_facts
from tasks.demo.chat import Address, Call, parse_call
from tasks.demo.faults import FAULTS, reply_to
from tasks.demo.kinds import KINDS, TRIAGE_SCHEMA, kind_for
from tasks.demo.replies import Completion
from tasks.demo.scenario import FIRST_THIRTY, TABLE, Staged, staged_fault
from tasks.demo.tickets import payload_for, tickets
from tasks.llm.prompt import render
from tasks.llm.request import PromptSpec

HOLDING = {"auth_failed", "quota_exhausted", "quota_402"}
DEADLY = {
    "wrong_schema",
    "content_filter_400",
    "content_filter_finish",
    "error_500",
    "error_503",
    "length",
    "context_too_long",
    "html_502",
    "empty",
}


def call_for(number: int, *, cycle: int = 1, nth: int = 1, kind: str | None = None) -> Call:
    """The call that the engine makes for ticket ``number`` (from 1) in the trickle's first round."""
    kind = kind or kind_for(number - 1, len(tickets()))
    fields = KINDS[kind]
    spec = PromptSpec("m", fields["system_prompt"], fields["prompt"], fields.get("output_schema"))
    body = json.dumps({"messages": render(spec, payload_for(kind, number - 1))}).encode()
    call = parse_call({"x-redrive-task": f"t{number}", "x-redrive-cycle": str(cycle)}, body)
    return Call(**{**call.__dict__, "number": nth})


def kills(staged: Staged) -> bool:
    """Whether a task does not survive this fault in its first cycle."""
    return staged.times is None and staged.fault in DEADLY


def test_every_staged_fault_exists_and_none_holds_the_provider() -> None:
    assert {staged.fault for staged in TABLE.values()} <= FAULTS.keys() - HOLDING - {"no_answer"}


def test_the_first_thirty_show_deaths_and_retries() -> None:
    dead = [staged.fault for staged in FIRST_THIRTY.values() if kills(staged)]
    assert sorted(dead) == ["content_filter_400", "error_500", "length", "wrong_schema"]
    assert len(FIRST_THIRTY) - len(dead) == 6


def test_most_tickets_are_well_and_few_die() -> None:
    later = [staged for number, staged in TABLE.items() if number > 30]
    assert len(TABLE) <= 40
    assert 5 <= sum(map(kills, later)) <= 8


@pytest.mark.parametrize("number", TABLE)
def test_a_fault_is_met_in_the_first_cycle_and_cleared_in_the_second(number: int) -> None:
    staged = staged_fault(call_for(number))
    assert staged is not None
    assert staged_fault(call_for(number, cycle=2)) is None
    reply = reply_to(call_for(number, cycle=2), Address("", fault="demo"))
    assert isinstance(reply, Completion)
    assert reply.finish == "stop"


@pytest.mark.parametrize("number", TABLE)
def test_a_passing_fault_is_met_once(number: int) -> None:
    staged = TABLE[number]
    later = staged_fault(call_for(number, nth=2))
    assert (later is None) == (staged.times == 1)


def test_the_fault_of_a_schema_needs_a_schema() -> None:
    assert staged_fault(call_for(5)) == Staged("wrong_schema")
    assert staged_fault(call_for(5, kind="reply.draft")) == Staged("content_filter_finish")


def test_retry_after_of_the_demo_is_short() -> None:
    reply = reply_to(call_for(3), Address("", fault="demo"))
    assert reply.status == 429  # type: ignore[union-attr]
    assert dict(reply.headers) == {"retry-after": "1"}  # type: ignore[union-attr]


def test_a_task_that_is_no_ticket_meets_no_fault() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "Nothing about tickets"}]}).encode()
    assert staged_fault(parse_call({}, body)) is None


def answers_for(kind: str) -> Mapping[str, str]:
    """All answers of a kind by ticket."""
    return {ticket["ticket"]: answer(call_for(place + 1, kind=kind)) for place, ticket in enumerate(tickets())}


def test_triage_is_believable() -> None:
    triage = {ticket: json.loads(text) for ticket, text in answers_for("ticket.triage").items()}
    assert triage["T-0001"] == {
        "category": "billing",
        "urgency": "high",
        "sentiment": "frustrated",
        "language": "en",
        "summary": "Our card was charged 49.00 EUR twice on 1 June, two minutes apart.",
        "needs_human": True,
        "confidence": triage["T-0001"]["confidence"],
    }
    assert {value["language"] for value in triage.values()} >= {"en", "de", "fr", "zh-hans", "ja"}
    allowed: list[str] = TRIAGE_SCHEMA["properties"]["category"]["enum"]
    assert {value["category"] for value in triage.values()} == set(allowed)


def test_drafts_answer_in_the_customers_language() -> None:
    drafts = answers_for("reply.draft")
    for ticket in tickets():
        text = drafts[ticket["ticket"]]
        assert ticket["ticket"] in text
        assert ticket["product"] in text
    assert drafts["T-0003"].startswith("您好")
    assert drafts["T-0005"].startswith("Guten Tag")
    assert len(set(drafts.values())) == 200


def test_summaries_list_what_was_written() -> None:
    summary = answers_for("customer.summary")["T-0007"]
    assert "C-1004 has written 2 times about Fennel Ledger." in summary
    assert "- T-0001, by email: Charged twice for the June plan" in summary


def test_the_same_question_has_the_same_answer() -> None:
    assert answers_for("ticket.triage") == answers_for("ticket.triage")


@pytest.mark.parametrize(
    ("text", "most", "sentence"),
    [
        ("One. Two.", 50, "One."),
        ("49.00 EUR twice! And more", 50, "49.00 EUR twice!"),
        ("同步卡住了。请看一下。", 50, "同步卡住了。"),
        ("no end at all", 6, "no en…"),
        ("", 10, ""),
    ],
)
def test_first_sentences(text: str, most: int, sentence: str) -> None:
    assert first_sentence(text, most) == sentence


def test_facts_of_any_text() -> None:
    assert read_facts("Just a question").body == "Just a question"
    facts = read_facts("Ticket: T-0001\nSubject: A: b\n\nHello\n\nSubject: not this")
    assert (facts["ticket"], facts["subject"], facts["product"]) == ("T-0001", "A: b", "")
    assert facts.body == "Hello\n\nSubject: not this"
    assert best_match("category", "") is None


def test_off_topic_prose_holds_no_bracket() -> None:
    call: Any = parse_call({}, json.dumps({"messages": [{"role": "user", "content": '{"a": [1]} is it'}]}).encode())
    assert not set("{}[]") & set(off_topic(call))
