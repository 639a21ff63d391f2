"""Names that secrets stand beside, and what a value there must look like to be one. Pure, a few comparisons each."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

#: The last word of a name; what stands before it is looked at by ``strength``, as a search for whole names is slow.
CORE = (
    r"pass(?:[_-]?word|wd|[_-]?phrase|wort|code)?|pwd|pw|kennwort|key(?<=[a-z0-9_\-\ ]key)|secret|token|credential"
    r"|cookie|jwt|session[_-]?id|connection[_-]?string|signature|authorization|auth|bearer"
)
_ENDING = re.compile(rf"({CORE})(s?)(?:[_-]?\d{{1,2}})?\Z")
#: Characters before the core that are looked at: longer than any of the words below.
REACH = 40

# fmt: off
#: ``api_key``, ``x-functions-key``: whose key is a credential.
_KEY_OWNERS = (
    "api", "subscription", "account", "access", "master", "secret", "private", "signing", "encryption", "auth",
    "service", "functions", "gateway", "upstream", "provider", "model", "llm", "openai", "anthropic", "claude",
    "azure", "google", "gemini", "vertex", "groq", "mistral", "cohere", "deepseek", "dashscope", "qwen", "moonshot",
    "zhipu", "openrouter", "together", "fireworks", "huggingface", "replicate", "perplexity", "xai", "nvidia",
    "bedrock", "litellm", "ollama", "vllm",
)
#: Keys that name a thing instead of opening a door; of other ``…_KEY=`` in capitals, what looks like a secret goes.
_KEY_THINGS = (
    "idempotency", "primary", "foreign", "cache", "partition", "sort", "public", "routing", "lookup", "object", "row",
    "index", "unique", "hash", "shard", "group", "message", "event", "lock", "job", "task", "request", "trace", "s3",
    "dedup", "map", "dict", "json", "missing", "storage", "registry", "redis", "tag", "host",
)
_TOKEN_OWNERS = (
    "access", "refresh", "_id", "-id", "auth", "bearer", "session", "security", "api", "bot", "personal", "oauth",
    "csrf", "sas", "hf", "github",
)
# fmt: on
_PASS_OWNERS = ("db", "smtp", "ftp", "mail", "user", "database")
_SIGNERS = ("x-amz", "x-goog")
#: Too short to be looked for inside words (``bypass``, ``author``).
_WHOLE = frozenset({"pw", "pass", "auth", "bearer"})
_WORDS = _WHOLE | {"key", "token", "signature", "authorization"}

_NOTHING = frozenset(
    {"", "none", "null", "nil", "undefined", "true", "false", "...", "***", "yes", "no", "str", "string"}
)
#: A value that is code, not a secret: ``api_key=os.environ[…]``.
_CODE = re.compile(r"(?:os|self|settings|config|conf|cfg|env|environ|args|options|getenv|st|app)\.\w")
MASKED = "[masked]"


class Strength(IntEnum):
    """How much a name says about its value."""

    NONE = 0
    #: Also has innocent values (``token``): only what looks like a secret is masked.
    WEAK = 1
    #: Has few: letters and digits together are enough (``pass``, ``bearer``).
    FAIR = 2
    #: The value is a secret whatever it looks like.
    STRONG = 3


def strength(before: str, core: str) -> Strength:
    """What a name says that ends with ``core`` and begins with the end of ``before``; both in lower case."""
    return _strength(before[-REACH:], core) if core in _WORDS else Strength.STRONG


@lru_cache(maxsize=4096)
def _strength(before: str, core: str) -> Strength:
    owner = before[:-1] if before[-1:] in {"_", "-"} else before
    if core == "key":
        return Strength.STRONG if owner.endswith(_KEY_OWNERS) else _of_spoken_key(before)
    if core == "token":
        return Strength.STRONG if owner == "id" or owner.endswith(_TOKEN_OWNERS) else Strength.WEAK
    if core == "signature":
        return Strength.STRONG if owner.endswith(_SIGNERS) else Strength.WEAK
    if core == "pass" and owner.endswith(_PASS_OWNERS):
        return Strength.STRONG
    if core in _WHOLE and before[-1:].isalnum():
        return Strength.NONE
    return Strength.STRONG if core == "pw" else Strength.FAIR


def _of_spoken_key(before: str) -> Strength:
    """``api key: …``: prose, so only what looks like a secret goes."""
    return Strength.WEAK if before.endswith(("api ", "access ", "secret ", "subscription ")) else Strength.NONE


def is_variable_of_key(name: str) -> bool:
    """Whether ``name`` up to its ``KEY`` is that of an environment variable that may hold a credential."""
    owner = name.removesuffix("KEY")
    return owner.endswith("_") and owner.isupper() and not owner[:-1].lower().endswith(_KEY_THINGS)


def strength_of(name: str) -> Strength:
    """What the whole ``name`` says about its value (``DB_PASSWORD``, ``x-api-key``, ``credentials``)."""
    name = name.strip()
    found = _ENDING.search(name[-2 * REACH :].lower())
    if found is None:
        return Strength.NONE
    before, core, plural = name[: len(name) - len(found.group(0))], found.group(1), found.group(2)
    said = strength(before.lower(), core)
    if core == "key" and said is Strength.NONE and not plural and is_variable_of_key(name):
        return Strength.WEAK
    if core == "authorization":
        return Strength.STRONG
    return Strength.WEAK if plural and core == "token" else said


def counts(name: str) -> bool:
    """Whether ``name`` is a plural, so that a number under it is how many there are."""
    found = _ENDING.search(name.strip()[-2 * REACH :].lower())
    return found is not None and bool(found.group(2))


def is_nothing(value: str) -> bool:
    """Whether a value says that there is none, or is masked already."""
    return value.strip("*. ").lower() in _NOTHING or value.startswith(MASKED)


def is_code(value: str) -> bool:
    """Whether a value is an expression of a program."""
    return _CODE.match(value) is not None


def is_tokenlike(value: str) -> bool:
    """Whether a value beside a weak name is a secret: long enough, and no plain word or number."""
    return (
        len(value) >= 8
        and not value.replace(",", "").replace(".", "").isdigit()
        and (any(character.isdigit() for character in value) or len(value) >= 24)
    )


def is_secret(value: str, said: Strength) -> bool:
    """Whether ``value`` beside a name that says so much is a secret."""
    if is_nothing(value):
        return False
    return said is Strength.STRONG or is_tokenlike(value) or (said is Strength.FAIR and is_mixed(value))


def is_mixed(value: str) -> bool:
    """Whether a value is letters and digits together, as no word of a sentence is."""
    return len(value) >= 6 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
