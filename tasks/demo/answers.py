"""What the simulated model says: believable words on what it was asked, the same for the same question. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tasks.demo.chat import Call
from tasks.demo.draw import seeded
from tasks.demo.languages import guess_language
from tasks.demo.phrases import phrases
from tasks.demo.schema import generate

LABEL = re.compile(r"^(Ticket|Customer|Product|Channel|Subject): *(.+)$", re.MULTILINE)
LISTED = re.compile(r"^(T-\d{4}) \(([^)]+)\): (.+)$", re.MULTILINE)
NEXT_STEPS = ("answer the newest message first", "ask whether the last answer settled it", "offer a call")
DEFAULTS = {"category": "how_to", "urgency": "normal", "sentiment": "calm"}
SENTENCE = re.compile(r"(.+?(?:[.!?](?=\s|$)|[。!?]|$))", re.DOTALL)


@dataclass(frozen=True)
class Facts:
    """What a prompt says about a ticket: its labels, and the customer's own words."""

    labels: Mapping[str, str]
    body: str

    def __getitem__(self, label: str) -> str:
        return self.labels.get(label, "")


def read_facts(prompt: str) -> Facts:
    """The labels at the head of a prompt and what stands below its first empty line; any other text is all body."""
    labels = {name.lower(): value.strip() for name, value in reversed(LABEL.findall(prompt))}
    _, blank, below = prompt.partition("\n\n")
    return Facts(labels, (below if labels and blank else prompt).strip())


def answer(call: Call) -> str:
    """A good answer. Raises schema.Unsatisfiable when the call's schema cannot be answered."""
    random = seeded(call.seed)
    facts = read_facts(call.prompt)
    if call.schema is not None:
        return json.dumps(generate(call.schema, random, Suggestions(facts, random)), ensure_ascii=False)
    prose = _prose(call, facts, random)
    return json.dumps({"answer": prose}, ensure_ascii=False) if call.wants_json else prose


def off_topic(call: Call) -> str:
    """Prose where JSON was asked for, without a bracket that could be mended into some."""
    opening = first_sentence(read_facts(call.prompt).body, 80)
    bare = re.sub(r"[\[\]{}]", "", opening)
    return f"Sure, I can help with that. The message says: {bare} In my view this needs a person to look at it."


def first_sentence(text: str, most: int) -> str:
    """The first sentence of a text, at most ``most`` characters long."""
    found = SENTENCE.match(text.strip())
    sentence = " ".join(found[1].split()) if found else ""
    return sentence if len(sentence) <= most else sentence[: max(0, most - 1)].rstrip() + "…"


def _prose(call: Call, facts: Facts, random: Random) -> str:
    asked = call.text.lower()
    if "summar" in asked:
        return _summary(facts, call.prompt, random)
    if "reply" in asked or "answer to" in asked:
        return _letter(facts, random)
    opening = first_sentence(facts.body, 160) or "nothing"
    return f"You wrote: “{opening}” This is a simulated answer; no model has read it. " + _letter(facts, random)


def _letter(facts: Facts, random: Random) -> str:
    letters = phrases()["reply"]
    letter = letters.get(guess_language(facts.body), letters["en"])
    words = {
        "subject": facts["subject"] or first_sentence(facts.body, 60),
        "product": facts["product"] or "Customer Care",
        "ticket": facts["ticket"] or "no ticket",
    }
    parts = (random.choice(letter[part]) for part in ("open", "act", "close"))
    return "\n\n".join(part.format(**words) for part in parts)


def _summary(facts: Facts, prompt: str, random: Random) -> str:
    listed = LISTED.findall(prompt)
    times = "once" if len(listed) < 2 else f"{len(listed)} times"
    lines = [f"{facts['customer'] or 'The customer'} has written {times} about {facts['product'] or 'the product'}."]
    lines += [f"- {ticket}, by {channel}: {subject}" for ticket, channel, subject in listed]
    mood = best_match("sentiment", facts.body) or DEFAULTS["sentiment"]
    next_step = random.choice(NEXT_STEPS)
    return "\n".join([*lines, f"Mood: {mood}. Next step: {next_step}."])


def best_match(topic: str, text: str) -> str | None:
    """The heading of ``topic`` whose words are found most often in a text, or None where none is."""
    lowered = text.lower()
    scores = {name: sum(word in lowered for word in words) for name, words in phrases()[topic].items()}
    name = max(scores, key=lambda one: scores[one])
    return name if scores[name] else None


class Suggestions:
    """Proposes values for the properties of an answer's schema by their names, from the facts of the prompt."""

    def __init__(self, facts: Facts, random: Random) -> None:
        self._facts = facts
        self._random = random

    def __call__(self, name: str, schema: Mapping[str, Any]) -> Any:
        """A fitting value, or None: then one is drawn."""
        text = f"{self._facts['subject']}\n{self._facts.body}"
        if name in DEFAULTS:
            return best_match(name, text) or DEFAULTS[name]
        if name == "language":
            return guess_language(self._facts.body)
        if name == "summary":
            return first_sentence(self._facts.body, schema.get("maxLength", 200))
        if name == "confidence":
            return round(self._random.uniform(0.62, 0.98), 2)
        if name == "needs_human":
            return best_match("urgency", text) in {"urgent", "high"}
        return self._facts.labels.get(name)
