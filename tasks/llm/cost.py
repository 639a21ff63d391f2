"""What a call cost, by the price list that genai-prices brings along. Never asks the network."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from genai_prices import Usage, calc_price

#: The smallest amount that is kept: numeric(14,8).
STEP = Decimal("0.00000001")
LARGEST = Decimal("999999.99999999")
#: Beyond any call, and the most that a column of tokens holds.
MOST_TOKENS = 2**31 - 1


def cost(provider_base_url: str, model: str, input_tokens: int | None, output_tokens: int | None) -> Decimal | None:
    """US dollars for a call, to eight decimals; None where the endpoint, the model or a token count is unknown.

    The endpoint decides whose price list counts: a local server that calls its model gpt-4o costs nothing known.
    """
    if not model or not (_is_count(input_tokens) and _is_count(output_tokens)):
        return None
    try:
        price = calc_price(
            Usage(input_tokens=input_tokens, output_tokens=output_tokens), model, provider_api_url=provider_base_url
        )
        amount = price.total_price.quantize(STEP)
    except Exception:
        # Whatever a price list stumbles over: no answer is lost for the want of its price.
        return None
    return amount if 0 <= amount <= LARGEST else None


def _is_count(tokens: object) -> bool:
    """Whether a provider's number can be one of tokens: they send text, negative ones, 1e300 and NaN as well."""
    return isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens <= MOST_TOKENS


def first_cost(
    provider_base_url: str, models: Iterable[str | None], input_tokens: int | None, output_tokens: int | None
) -> Decimal | None:
    """The cost under the first of these names that has a price: the model that answered, then the one asked for."""
    amounts = (cost(provider_base_url, model or "", input_tokens, output_tokens) for model in models)
    return next((amount for amount in amounts if amount is not None), None)
