"""The cost of tokens in dollars, by the prices that the models have today.

No other module turns tokens into dollars. The demo model costs nothing.
"""

from django.conf import settings

from memory.engine.policy import CACHED_PRICE

from . import providers
from .provider_file import Prices

# A token that is written to the provider's cache costs so many of the input, unless the
# prices of the model say otherwise: for some minutes, and for an hour.
SHORT, LONG = 1.25, 2.0
# Prices are of so many tokens.
MILLION = 1_000_000
FREE = Prices()


def has_prices() -> bool:
    """Return True if any model of the site has prices.

    Otherwise no page mentions money.
    """
    if not settings.PROVIDERS:
        return bool(settings.PRICE_INPUT or settings.PRICE_OUTPUT)
    return any(find_prices(name) != FREE for name in providers.list_models())


def find_prices(name: str) -> Prices:
    return FREE if providers.is_demo(name) else providers.find_model(name).prices


def count_extra(
    name: str, kept: float, kept_long: float = 0, factor: float = LONG
) -> int:
    """Return what writing to the cache costs besides, in tokens of the input.

    `kept` tokens were written, `kept_long` of them for longer, at `factor` where the
    model has no price for that.
    """
    prices = find_prices(name)
    if not prices.input:
        return 0

    def share(price: float | None, usual: float) -> float:
        return max(0, (usual if price is None else price / prices.input) - 1)

    short = share(prices.cache_write, SHORT) * (kept - kept_long)
    long = share(prices.cache_write_long, factor) * kept_long
    return round(short + long)


def price_tokens(
    name: str, read: int, written: int = 0, cached: int = 0, extra: int = 0
) -> float:
    """Return the dollars for the tokens that a model has read and written.

    `cached` of the tokens it has read came from the provider's cache, and `extra` is
    what writing to it cost besides.
    """
    prices = find_prices(name)
    cheap = prices.cached
    if cheap is None:
        cheap = prices.input * CACHED_PRICE
    fresh = read - cached + extra
    cost = fresh * prices.input + cached * cheap + written * prices.output
    return cost / MILLION


def format_dollars(amount: float) -> str:
    """Format a sum; small ones keep their digits, since they are costs of a request."""
    sign, size = "-" * (amount < 0), abs(amount)
    return f"{sign}${size:,.2f}" if size >= 1 else f"{sign}${size:.4f}"
