"""The content of the demo: 200 believable tickets, and payloads that the prompts can be rendered with."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tasks.demo.kinds import COMMON, KINDS, TURNS, kind_for
from tasks.demo.languages import guess_language
from tasks.demo.tickets import payload_for, tickets
from tasks.llm.prompt import render
from tasks.llm.request import PromptSpec

PRODUCTS = {"Fennel Ledger", "Oriole Desk", "Tidepool Sync", "Larkspur Home", "Cobble Pay", "Mossgate"}


def test_there_are_200_different_tickets() -> None:
    assert [one["ticket"] for one in tickets()] == [f"T-{number:04d}" for number in range(1, 201)]
    for field in ("subject", "text"):
        assert len({one[field] for one in tickets()}) == 200  # type: ignore[literal-required]


def test_their_fields_are_filled_and_of_one_form() -> None:
    for one in tickets():
        assert re.fullmatch(r"C-\d{4}", one["customer"])
        assert re.fullmatch(rf"S-{one['customer'][2:]}-\d", one["session"])
        assert one["channel"] in {"email", "chat", "web form", "phone", "app review"}
        assert 4 <= len(one["subject"]) <= 120
        assert 15 <= len(one["text"]) <= 800


def test_they_are_varied() -> None:
    products = Counter(one["product"] for one in tickets())
    assert set(products) == PRODUCTS
    assert min(products.values()) >= 30
    languages = Counter(one["language"] for one in tickets())
    assert len(languages) >= 10
    assert languages["zh-hans"] + languages["zh-hant"] >= 20
    lengths = sorted(len(one["text"]) for one in tickets())
    assert lengths[20] < 90 < 200 < lengths[-40]
    customers = Counter(one["customer"] for one in tickets())
    assert len(customers) > 100
    assert sum(count > 1 for count in customers.values()) > 40


def test_a_customer_keeps_to_one_language_and_one_product() -> None:
    for field in ("language", "product"):
        assert len({(one["customer"], one[field]) for one in tickets()}) == len(  # type: ignore[literal-required]
            {one["customer"] for one in tickets()}
        )


def test_the_languages_are_guessed_right() -> None:
    wrong = [one["ticket"] for one in tickets() if guess_language(one["text"]) != one["language"]]
    assert wrong == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_payload_renders(kind: str) -> None:
    fields = {**COMMON, **KINDS[kind]}
    spec = PromptSpec(fields["model"], fields["system_prompt"], fields["prompt"], fields.get("output_schema"))
    for place, ticket in enumerate(tickets()):
        messages = render(spec, payload_for(kind, place))
        assert f"Ticket: {ticket['ticket']}\n" in messages[-1]["content"]
        assert ticket["text"] in messages[-1]["content"]


def test_a_payload_by_hand_needs_little() -> None:
    for kind, payload in (
        ("ticket.triage", {"text": "It broke."}),
        ("reply.draft", {"text": "It broke."}),
        ("customer.summary", {"customer": "C-1", "tickets": []}),
    ):
        fields = KINDS[kind]
        render(PromptSpec("m", fields["system_prompt"], fields["prompt"]), payload)


def test_a_summary_has_what_the_customer_wrote_up_to_then() -> None:
    place = next(place for place, one in enumerate(tickets()) if one["subject"].startswith("Re: Deleted folder"))
    payload = payload_for("customer.summary", place)
    assert [one["ticket"] for one in payload["tickets"]] == ["T-0019", tickets()[place]["ticket"]]
    assert payload["subject"] == "C-1008, Tidepool Sync"


def test_turns_go_round_so_that_each_ticket_meets_other_kinds() -> None:
    assert [kind_for(number, 200) for number in range(5)] == list(TURNS)
    assert {kind_for(200 * times, 200) for times in range(5)} == set(KINDS)
