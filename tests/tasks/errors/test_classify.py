"""Each failure gets the code an engineer would give it, and is retried only where a retry can mend it."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest

from tasks import errors
from tasks.errors import CODES, Catalogue, Failure, RuleError, classify
from tasks.states import Cause, Level
from tests.tasks.errors.cases import CASES

UNKNOWN_TEXT = Failure(exception="app.errors.Odd", message="the flux capacitor is cold")


@pytest.mark.parametrize(
    ("code", "retried", "failure"), CASES, ids=[f"{at}-{code}-{f.exception}" for at, (code, _, f) in enumerate(CASES)]
)
def test_known_failures(code: str, retried: bool, failure: Failure) -> None:
    verdict = classify(failure)
    assert (verdict.code, verdict.retryable) == (code, retried), verdict.rule


@pytest.mark.parametrize(
    ("fault", "code", "retried"),
    [
        (errors.AnswerTruncated(), "AI_OUTPUT_TRUNCATED", False),
        (errors.AnswerFiltered(), "AI_CONTENT_FILTERED", False),
        (errors.AnswerEmpty(), "AI_OUTPUT_EMPTY", True),
        (errors.AnswerMalformed(problems=["urgency: expected one of low, high"]), "AI_OUTPUT_MALFORMED", True),
        (errors.StreamCut(), "AI_CONNECTION_FAILED", True),
        (errors.AttemptTimeout(seconds=120), "AI_MODEL_TIMEOUT", True),
        (errors.Stalled(seconds=30), "AI_MODEL_TIMEOUT", True),
        (errors.ConfigurationFault("the variable ACME_KEY is not set"), "AI_CONFIG_INVALID", False),
        (errors.ProviderError(200, {}, {"error": {"message": "Bad gateway", "code": 502}}), "AI_UPSTREAM_5XX", True),
        (errors.ProviderError(200, {}, {"error": {"code": "invalid_api_key"}}), "AI_AUTH_FAILED", False),
        (errors.ProviderError(200, {}, "<html><head><title>Log in</title></head></html>"), "AI_CONFIG_INVALID", False),
        (errors.ProviderError(200, {}, "oops", "the answer is not JSON"), "AI_OUTPUT_MALFORMED", True),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_our_own_faults(fault: Exception, code: str, retried: bool) -> None:
    verdict = classify(Failure.from_exception(fault))
    assert (verdict.code, verdict.retryable) == (code, retried)


@pytest.mark.parametrize("status", [100, 300, 304, 305, 399, 600, 700, 999])
@pytest.mark.parametrize("text", ["odd", "Internal Server Error", '{"error": {"message": "odd"}}', ""])
def test_only_5xx_is_an_error_of_the_server(status: int, text: str) -> None:
    """The SDK raises InternalServerError for 600 and 999 too, and APIStatusError for 304."""
    response = httpx2.Response(status, request=httpx2.Request("POST", "https://api.example/v1/x"), text=text)
    with openai.OpenAI(api_key="none", base_url="https://api.example/v1") as client:
        error = client._make_status_error_from_response(response)
    failure = Failure.from_exception(error)
    assert (failure.http_status, classify(failure).code) == (status, "AI_UNKNOWN_ERROR")


@pytest.mark.parametrize("status", [-1, 0, 99, 1000, 10**9, 429.5, True, "429x", "٤٢٩", b"429", [429]])
def test_what_is_no_status_is_none(status: Any) -> None:
    failure = Failure(message="the flux capacitor is cold", http_status=status)
    assert failure.http_status is None and classify(failure).code == "AI_UNKNOWN_ERROR"


def test_a_status_in_words_counts() -> None:
    assert classify(Failure(http_status="429")).code == "AI_RATE_LIMITED"  # type: ignore[arg-type]


def test_every_code_explains_itself() -> None:
    for spec in CODES.values():
        assert spec.title and spec.user_message and spec.runbook and spec.next_step and spec.action, spec.code
        assert isinstance(spec.level, Level) and isinstance(spec.cause, Cause)
    assert {code for code, spec in CODES.items() if spec.holds_provider} == {"AI_AUTH_FAILED", "AI_QUOTA_EXHAUSTED"}
    assert [code for code, spec in CODES.items() if not spec.uses_budget] == ["AI_RATE_LIMITED", "AI_PROVIDER_HELD"]


def test_no_rule_gives_unknown_and_says_so() -> None:
    verdict = classify(UNKNOWN_TEXT)
    assert verdict.code == "AI_UNKNOWN_ERROR" and verdict.rule is None


def test_operators_rules_come_first_in_their_order() -> None:
    rules = [
        {"position": 20, "code": "AI_OVERLOADED", "message": "flux capacitor"},
        {
            "position": 10,
            "code": "AI_TOOL_FAILED",
            "message": "FLUX .* cold",
            "provider": "acme-*",
            "kind": "ticket.triage",
        },
    ]
    catalogue = Catalogue.build([], rules)
    from_acme = Failure(exception="openai.RateLimitError", message="flux is cold", http_status=429, provider="acme-eu")
    assert catalogue.classify(from_acme, "ticket.triage").code == "AI_TOOL_FAILED"
    assert catalogue.classify(from_acme, "reply.draft").code == "AI_RATE_LIMITED"
    assert catalogue.classify(UNKNOWN_TEXT).code == "AI_OVERLOADED"


def test_all_conditions_of_a_rule_must_hold() -> None:
    rule = {
        "code": "AI_TOOL_FAILED",
        "exception": r"Odd$",
        "message": "cold",
        "http_status": "none, 5xx",
        "body": r"zone=\w+",
    }
    catalogue = Catalogue.build([], [rule])
    whole = {"exception": "app.Odd", "message": "it is cold", "body": {"zone": "eu"}}
    assert catalogue.classify(Failure(**whole)).code == "AI_TOOL_FAILED"
    for name, other in (("exception", "app.Even"), ("message", "it is warm"), ("body", None), ("http_status", 418)):
        assert catalogue.classify(Failure(**{**whole, name: other})).code != "AI_TOOL_FAILED", name


def test_an_operators_code_row_changes_the_policy_and_may_be_new() -> None:
    rows = [
        {"code": "AI_UNKNOWN_ERROR", "retryable": False, "max_attempts": 2},
        {"code": "ACME_COLD", "level": "L2", "title": "Cold"},
    ]
    catalogue = Catalogue.build(rows, [{"code": "ACME_COLD", "message": "cold"}])
    assert catalogue.codes["AI_UNKNOWN_ERROR"].max_attempts == 2
    assert catalogue.codes["AI_UNKNOWN_ERROR"].title == CODES["AI_UNKNOWN_ERROR"].title
    verdict = catalogue.classify(UNKNOWN_TEXT)
    assert (verdict.code, verdict.level, verdict.retryable) == ("ACME_COLD", Level.L2, False)


def test_a_policy_that_was_cleared_is_the_kind_s() -> None:
    """A row of the database is complete: its None is an operator's word, not a gap."""
    fields = ("initial_interval_seconds", "backoff_coefficient", "maximum_interval_seconds", "max_attempts")
    built_in = CODES["AI_MODEL_LOADING"]
    assert [getattr(built_in, name) for name in fields] == [5.0, 2.0, 60.0, None]
    cleared = Catalogue.build([{"code": built_in.code, **dict.fromkeys(fields)}], []).codes[built_in.code]
    assert [getattr(cleared, name) for name in fields] == [None] * 4
    assert Catalogue.build([{"code": built_in.code}], []).codes[built_in.code] == built_in


@pytest.mark.parametrize("field", ["title", "level", "cause", "retryable", "uses_budget"])
def test_what_a_code_cannot_do_without_is_refused_when_empty(field: str) -> None:
    with pytest.raises(RuleError, match=f"error code AI_RATE_LIMITED: {field} must not be empty"):
        Catalogue.build([{"code": "AI_RATE_LIMITED", field: None}], [])


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"code": "AI_TOOL_FAILED", "message": "(unclosed"}, r"message: '\(unclosed' is no re2 pattern: missing \)"),
        ({"code": "AI_TOOL_FAILED", "message": r"(?=ahead)"}, r"invalid perl operator"),
        ({"code": "AI_TOOL_FAILED", "exception": r"a{1001}"}, r"exception: .* repetition"),
        ({"code": "AI_TOOL_FAILED", "http_status": "429, soon"}, r"http_status: 'soon' is neither"),
        ({"code": "AI_TOOL_FAILED"}, r"no condition"),
        ({"code": "NOPE", "message": "x"}, r"no error code 'NOPE'"),
        ({"code": "AI_TOOL_FAILED", "message": "x" * 2_001}, r"longer than 2000 bytes"),
    ],
)
def test_a_broken_rule_is_refused_with_the_reason(row: dict[str, str], says: str) -> None:
    with pytest.raises(RuleError, match=says):
        Catalogue.build([], [row])


def test_a_bad_level_of_a_code_is_refused() -> None:
    with pytest.raises(RuleError, match="error code ACME: 'L9' is not a valid Level"):
        Catalogue.build([{"code": "ACME", "level": "L9"}], [])


def test_every_built_in_rule_is_sound() -> None:
    assert errors.BUILT_IN.checked().rules
    positions = [rule.position for rule in errors.BUILT_IN.rules]
    assert positions == sorted(set(positions))
    assert {rule.code for rule in errors.BUILT_IN.rules} == set(CODES)


@pytest.mark.parametrize(
    "body", ["{", "<html><head><title>x</title></head>", "word \\u00e9 ", "[1,", "'code': '", "\n\n"]
)
def test_a_megabyte_costs_no_more_than_a_page(body: str) -> None:
    """Measured in work, not in time: what rules see of a megabyte is bounded."""
    text = body * (1_048_576 // len(body))
    evidence = errors.evidence.Evidence(Failure(exception="x.Y", message=text, body=text, traceback=text))
    seen = (evidence.text, evidence.fields, evidence.cause, evidence.classes, evidence.code_line, evidence.headers)
    assert max(len(part) for part in seen) < 50_000
    assert classify(evidence.failure).code in CODES


def test_a_verdict_reads_json_that_is_cut_off() -> None:
    whole = json.dumps({"error": {"code": "insufficient_quota", "message": "no"}, "more": "x" * 50})
    assert classify(Failure(exception="a.B", message=f"failed: {whole[:70]}")).code == "AI_QUOTA_EXHAUSTED"
