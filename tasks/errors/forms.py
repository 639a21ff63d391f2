"""Keys and tokens that are known by their form, wherever they stand. The patterns are linear (re2)."""

from __future__ import annotations

import re2

from tasks.errors.names import MASKED

#: Keys and tokens that are known by their form.
_FORMS = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{4,}(?:\.[A-Za-z0-9_\-]*){0,3}",
    r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}",
    r"\b(?:sk|csk|ak|pplx|xai|nvapi|tvly|fw|sk-lf|pk-lf|GOCSPX|jina|voyage|pa|r8|gsk|hf|tgp_v1|lsv2_pt|lsv2_sk|rdme"
    r"|dop_v1|doo_v1|shpat|shpss|shpca|sntrys|glsa|figd|npm|whsec|ghp|gho|ghu|ghs|ghr|github_pat|glpat|phc|phx|api_org)"
    r"[\-_][A-Za-z0-9_\-]{16,}",
    r"\bsk-[A-Za-z0-9_\-]{12,}",
    r"\bredrive_[A-Za-z0-9_\-]{43}",
    r"\bAIza[A-Za-z0-9_\-]{20,}",
    r"\bya29\.[A-Za-z0-9_.\-]{10,}",
    r"\b1//0[A-Za-z0-9_\-]{20,}",
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}\b",
    r"\bABSK[A-Za-z0-9+/=]{30,}",
    r"\bbedrock-api-key-[A-Za-z0-9+/=_\-]{16,}",
    r"\b(?:LTAI|AKID)[A-Za-z0-9]{12,}\b",
    r"\bxox[abeoprs]-[A-Za-z0-9\-]{8,}|\bxapp-[A-Za-z0-9\-]{8,}",
    r"\bSG\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}",
    r"\bpypi-[A-Za-z0-9_\-]{20,}",
    r"\bdapi[0-9a-f]{32}\b",
    r"\b[A-Za-z0-9]{30,}(?:JQQJ99|AzureML|ACDb|\+ASt)[A-Za-z0-9+/=]{8,}",
    r"\bATATT3x[A-Za-z0-9_\-=]{20,}",
    r"\b\d{8,10}:AA[A-Za-z0-9_\-]{30,}",
    r"\bAGE-SECRET-KEY-[A-Z0-9]{20,}",
)
_FORM = re2.compile("|".join(_FORMS))
#: One pass that tells most texts apart from those worth a closer look; each pattern below needs a part of it.
_ANY = re2.compile(
    r"(?i)://|key|pass|pwd|\bpw|wort|token|secret|sig|auth|cookie|credential|session|jwt|bearer|basic|negotiate|connection"
    r"|resolve|host|address|eyJ|(?:sk|rk|ak|pa|r8|fw|hf|pk|doo?|phc|phx|ghp|gho|ghu|ghs|ghr|npm|xai|gsk|jina|pplx)[\-_]"
    r"|tgp_|lsv2|rdme|dop_|shp|sntrys|glsa|figd|whsec|github_|glpat|api_org|voyage|nvapi|tvly|gocspx|aiza|ya29|1//0"
    r"|akia|asia|abia|acca|absk|bedrock|ltai|akid|xox|xapp|sg\.|pypi|dapi|jqqj|azureml|acdb|\+ast|atatt|:aa|sas=|code="
    r"| -u |--|redrive_"
)


#: The end of a private key whose beginning was cut away. Not one of the forms: it may match as far as the text goes,
#: so that each of their matches would cost as much as the whole text.
_KEY_LINES = re2.compile(r"(?:[A-Za-z0-9+/=]{16,}\s+)+$")
_KEY_END = re2.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")


def may_hold_secret(text: str) -> bool:
    """Whether anything in ``text`` is worth a closer look."""
    return _ANY.search(text) is not None


def hide_forms(text: str) -> str:
    """``text`` without what is a key by its form."""
    text = str(_FORM.sub(lambda match: MASKED, text))
    return _without_key_ends(text) if "-----END " in text else text


def _without_key_ends(text: str) -> str:
    parts, at = [], 0
    for end in _KEY_END.finditer(text):
        lines = _KEY_LINES.search(text[at : end.start()])
        parts += [text[at : at + lines.start()], MASKED] if lines else [text[at : end.end()]]
        at = end.end()
    return "".join((*parts, text[at:]))
