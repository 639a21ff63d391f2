"""The 200 tickets of the demo, in the order in which they are submitted, and the payloads made of them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

SUMMARISED = 5


class Ticket(TypedDict):
    """One line of ``tickets.jsonl``. Products, customers and texts are made up."""

    ticket: str
    customer: str
    session: str
    product: str
    channel: str
    language: str
    subject: str
    text: str


@cache
def tickets() -> tuple[Ticket, ...]:
    """All tickets, oldest first."""
    with (Path(__file__).parent / "tickets.jsonl").open(encoding="utf-8") as file:
        return tuple(json.loads(line) for line in file)


def payload_for(kind: str, place: int) -> Mapping[str, Any]:
    """The payload of a task of ``kind`` about the ticket at ``place`` (from 0)."""
    ticket = tickets()[place]
    if kind != "customer.summary":
        return dict(ticket)
    written = [one for one in tickets()[: place + 1] if one["customer"] == ticket["customer"]][-SUMMARISED:]
    return {
        "customer": ticket["customer"],
        "session": ticket["session"],
        "product": ticket["product"],
        "ticket": ticket["ticket"],
        "subject": f"{ticket['customer']}, {ticket['product']}",
        "tickets": [{key: one[key] for key in ("ticket", "channel", "subject", "text")} for one in written],
    }
