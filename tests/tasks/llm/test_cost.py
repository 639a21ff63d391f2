from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tasks.llm.cost import LARGEST, MOST_TOKENS, cost, first_cost

OPENAI = "https://api.openai.com/v1"


def test_a_known_model_costs_tokens_times_list_price() -> None:
    # gpt-4o-mini: 0.15 and 0.60 dollars per million tokens.
    assert cost(OPENAI, "gpt-4o-mini", 1_000_000, 0) == Decimal("0.15")
    assert cost(OPENAI, "gpt-4o-mini", 1_000, 500) == Decimal("0.00045")


def test_eight_decimals() -> None:
    amount = cost(OPENAI, "gpt-4o-mini", 1, 1)

    assert amount == Decimal("0.00000075")
    assert amount.as_tuple().exponent == -8


@pytest.mark.parametrize(
    ("url", "model", "tokens"),
    [
        (OPENAI, "no-such-model-xyz", (10, 10)),
        ("http://127.0.0.1:9/v1", "gpt-4o-mini", (10, 10)),
        (OPENAI, "gpt-4o-mini", (None, 10)),
        (OPENAI, "gpt-4o-mini", (10, None)),
        (OPENAI, "", (10, 10)),
        ("no url", "gpt-4o-mini", (10, 10)),
    ],
)
def test_what_is_unknown_costs_none(url: str, model: str, tokens: tuple[int | None, int | None]) -> None:
    assert cost(url, model, *tokens) is None


@pytest.mark.parametrize(
    "tokens",
    [10**30, 2**31, 10**5000, -1, True, 1.5, float("nan"), float("inf"), "7", [7], Decimal(7)],
    ids=[str(number) for number in range(11)],
)
def test_what_is_no_count_of_tokens_has_no_cost_and_raises_nothing(tokens: Any) -> None:
    assert cost(OPENAI, "gpt-4o-mini", tokens, 1) is None
    assert cost(OPENAI, "gpt-4o-mini", 1, tokens) is None


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4o-mini", "o1-pro", "gpt-4.5-preview", "text-embedding-3-small"])
def test_the_largest_call_fits_into_the_column(model: str) -> None:
    amount = cost(OPENAI, model, MOST_TOKENS, MOST_TOKENS)
    assert amount is None or (0 <= amount <= LARGEST and amount.as_tuple().exponent == -8)


@pytest.mark.parametrize("url", ["http://[", "", "https://api.openai.com:99999/v1", "\x00", "x" * 100_000])
@pytest.mark.parametrize("model", ["\x00", "m" * 100_000, "gpt-4o\n", "(" * 50])
def test_no_name_makes_it_raise(url: str, model: str) -> None:
    assert cost(url, model, 1, 1) is None


def test_no_tokens_cost_nothing() -> None:
    assert cost(OPENAI, "gpt-4o-mini", 0, 0) == Decimal(0)


def test_the_model_that_answered_goes_before_the_one_asked_for() -> None:
    assert first_cost(OPENAI, ["gpt-4o", "gpt-4o-mini"], 1_000_000, 0) == Decimal("2.5")
    assert first_cost(OPENAI, ["a-name-of-our-own", "gpt-4o-mini"], 1_000_000, 0) == Decimal("0.15")
    assert first_cost(OPENAI, [None, "no-such-model-xyz"], 1_000_000, 0) is None
