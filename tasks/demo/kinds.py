"""The three kinds of the demo, as they are first made. Whatever a person changes on them later stays."""

from __future__ import annotations

from typing import Any

TRIAGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["category", "urgency", "sentiment", "language", "summary", "needs_human", "confidence"],
    "properties": {
        "category": {
            "type": "string",
            "enum": [
                "billing",
                "refund",
                "sign_in",
                "outage",
                "security",
                "data_loss",
                "hardware",
                "cancellation",
                "feature_request",
                "how_to",
            ],
        },
        "urgency": {"type": "string", "enum": ["low", "normal", "high", "urgent"]},
        "sentiment": {"type": "string", "enum": ["calm", "happy", "worried", "frustrated", "angry"]},
        "language": {"type": "string", "minLength": 2, "maxLength": 7},
        "summary": {"type": "string", "minLength": 1, "maxLength": 200},
        "needs_human": {"type": "boolean"},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    },
}

TICKET_PROMPT = """\
{% if ticket %}Ticket: {{ ticket }}
{% endif %}{% if customer %}Customer: {{ customer }}
{% endif %}{% if product %}Product: {{ product }}
{% endif %}{% if channel %}Channel: {{ channel }}
{% endif %}{% if subject %}Subject: {{ subject }}
{% endif %}
{{ text }}
"""

SUMMARY_PROMPT = """\
{% if ticket %}Ticket: {{ ticket }}
{% endif %}Customer: {{ customer }}
{% if product %}Product: {{ product }}
{% endif %}
{% for one in tickets %}{{ one.ticket }} ({{ one.channel }}): {{ one.subject }}
{{ one.text }}

{% endfor %}"""

KINDS: dict[str, dict[str, Any]] = {
    "ticket.triage": {
        "system_prompt": (
            "You sort the support tickets of a company that sells Fennel Ledger, Oriole Desk, Tidepool Sync, "
            "Larkspur Home, Cobble Pay and Mossgate. Judge by what the customer needs, not by the tone."
        ),
        "prompt": TICKET_PROMPT,
        "output_schema": TRIAGE_SCHEMA,
        "temperature": 0.0,
    },
    "customer.summary": {
        "system_prompt": (
            "Write a summary of what this customer has written to us, for the colleague who takes the next call: "
            "what it is about, what was promised, what is open. English, at most ten lines."
        ),
        "prompt": SUMMARY_PROMPT,
    },
    "reply.draft": {
        "system_prompt": (
            "Draft a reply to this ticket in the customer's language: short, polite, with one clear next step. "
            "A colleague reads it before it goes out."
        ),
        "prompt": TICKET_PROMPT,
        "temperature": 0.4,
    },
}
COMMON: dict[str, Any] = {
    "model": "simulated-small",
    "max_attempts": 3,
    "max_output_tokens": 800,
    "timeout_seconds": 60.0,
    "subject": "subject",
}
#: Whose turn it is: five tickets in a row. Triage comes most often, and its faults are the most telling.
TURNS = ("ticket.triage", "customer.summary", "ticket.triage", "reply.draft", "ticket.triage")


def kind_for(number: int, tickets: int) -> str:
    """The kind of the submitted task ``number`` (from 0); each time round the tickets the turns move on by one."""
    return TURNS[(number + number // tickets) % len(TURNS)]
