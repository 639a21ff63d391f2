"""What a request asks for: the address of a call with its faults and pace, and the chat itself. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from tasks.demo.schema import find_schema

TASK_MARK = re.compile(r"\[task:([^\]\s]{1,200})\]")
DEFAULT_FAULT = "ok"
CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


class NotAsked(Exception):
    """The request is none that the protocol knows; the sentence goes to the client with ``status``."""

    def __init__(self, sentence: str, status: int = 400, param: str | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.param = param


@dataclass(frozen=True)
class Address:
    """A path taken apart: ``/delay/500-3000/fault/ok/v1/chat/completions``. Options stand in pairs, in any order.

    ``delay``: seconds from, to, for a whole answer. ``times``: how often per task a fault is met before all is well.
    """

    resource: str
    fault: str = DEFAULT_FAULT
    delay: tuple[float, float] | None = None
    times: int | None = None
    retry_after: str | None = None
    chunks: int | None = None


def parse_address(target: str) -> Address:
    """The address of a request target. Raises NotAsked for an option that is not known or cannot be read."""
    words = [unquote(word) for word in urlsplit(target).path.split("/") if word]
    if "v1" not in words:
        raise NotAsked(f"No such address: {target}", status=404)
    split = words.index("v1")
    options, resource = words[:split], "/".join(words[split + 1 :])
    if len(options) % 2:
        raise NotAsked(f"The option {options[-1]!r} has no value.", status=404)
    pairs = zip(options[::2], options[1::2], strict=True)
    return Address(resource, **dict(_option(name, value) for name, value in pairs))


def _option(name: str, value: str) -> tuple[str, Any]:
    try:
        match name:
            case "fault":
                return "fault", value
            case "delay":
                low, _, high = value.partition("-")
                return "delay", (int(low) / 1000, int(high or low) / 1000)
            case "times":
                return "times", int(value)
            case "chunks":
                return "chunks", max(1, int(value))
            case "retry-after":
                return "retry_after", value
    except ValueError as error:
        raise NotAsked(f"The option {name!r} cannot be {value!r}.", status=404) from error
    raise NotAsked(f"No such option: {name!r}.", status=404)


@dataclass(frozen=True)
class Call:
    """One request for a completion.

    ``task``, ``cycle`` and ``attempt`` are what the client says of itself; without a word about the task it is known
    by a hash of its messages. ``number`` counts the calls of this task at this fault, from 1; ``asked_again`` says
    that the answer is wanted a second time within one attempt.
    """

    model: str
    messages: tuple[Mapping[str, Any], ...]
    task: str
    cycle: int = 1
    attempt: str = ""
    stream: bool = False
    include_usage: bool = False
    schema: Any = None
    wants_json: bool = False
    max_tokens: int | None = None
    api_key: str = ""
    number: int = 1
    asked_again: bool = False
    text: str = field(default="", repr=False)

    @property
    def prompt(self) -> str:
        """The words of the last message that a user sent before any answer."""
        first = next((place for place, one in enumerate(self.messages) if one.get("role") == "assistant"), None)
        asked = [one for one in self.messages[:first] if one.get("role") == "user"]
        return message_text(asked[-1]) if asked else self.text

    @property
    def seed(self) -> str:
        """The same for the same question, however often it is asked."""
        return hashlib.sha256(self.prompt.encode("utf-8", "surrogatepass")).hexdigest()


def parse_call(headers: Mapping[str, str], body: bytes) -> Call:
    """The call in a request's body. Raises NotAsked with what is wrong."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotAsked("We could not parse the JSON body of your request.") from error
    if not isinstance(asked, dict):
        raise NotAsked("The body of the request is not a JSON object.")
    messages = _messages(asked)
    text = "\n".join(message_text(message) for message in messages)
    shape, options = _object(asked, "response_format"), _object(asked, "stream_options")
    return Call(
        model=str(asked.get("model") or ""),
        messages=messages,
        task=headers.get("x-redrive-task") or _marked(text) or _hashed(messages),
        cycle=_positive(headers.get("x-redrive-cycle")),
        attempt=headers.get("x-redrive-attempt", ""),
        stream=asked.get("stream") is True,
        include_usage=options.get("include_usage") is True,
        schema=_schema(shape, text),
        wants_json=shape.get("type") in {"json_object", "json_schema"},
        max_tokens=_limit(asked),
        api_key=headers.get("authorization", "").removeprefix("Bearer ").strip(),
        asked_again=any(message.get("role") == "assistant" for message in messages),
        text=text,
    )


def message_text(message: Mapping[str, Any]) -> str:
    """The text of a message whose content is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def count_tokens(text: str) -> int:
    """About what a tokenizer would say: a token a CJK character, one for four others."""
    wide = len(CJK.findall(text))
    return wide + (len(text) - wide + 3) // 4


def _messages(asked: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages:
        raise NotAsked("Missing required parameter: 'messages'.", param="messages")
    if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
        raise NotAsked("Invalid type for 'messages': expected objects with a role.", param="messages")
    return tuple(messages)


def _object(asked: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = asked.get(name)
    return value if isinstance(value, dict) else {}


def _schema(shape: Mapping[str, Any], text: str) -> Any:
    if shape.get("type") == "json_schema":
        named = shape.get("json_schema")
        if not isinstance(named, dict) or "schema" not in named:
            raise NotAsked("Missing required parameter: 'response_format.json_schema'.", param="response_format")
        return named["schema"]
    return find_schema(text)


def _marked(text: str) -> str:
    found = TASK_MARK.search(text)
    return found[1] if found else ""


def _hashed(messages: tuple[Mapping[str, Any], ...]) -> str:
    data = json.dumps(messages, sort_keys=True).encode()
    return "sha256:" + hashlib.sha256(data).hexdigest()[:24]


def _positive(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and int(text) > 0 else 1


def _limit(asked: Mapping[str, Any]) -> int | None:
    limit = asked.get("max_completion_tokens") or asked.get("max_tokens")
    return limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else None
