"""The cost of tokens in dollars, by the prices that the models have today.

No other module turns tokens into dollars. The demo model costs nothing.
"""

from django.conf import settings

from memory.engine.policy import CACHED_PRICE

from . import providers
from .provider_file import Prices

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


def price_tokens(name: str, read: int, written: int = 0, cached: int = 0) -> float:
    """Return the dollars for the tokens that a model has read and written.

    `cached` of the tokens it has read came from the provider's cache.
    """
    prices = find_prices(name)
    cheap = prices.cached
    if cheap is None:
        cheap = prices.input * CACHED_PRICE
    cost = (read - cached) * prices.input + cached * cheap + written * prices.output
    return cost / MILLION


def format_dollars(amount: float) -> str:
    """Format a sum; small ones keep their digits, since they are costs of a request."""
    sign, size = "-" * (amount < 0), abs(amount)
    return f"{sign}${size:,.2f}" if size >= 1 else f"{sign}${size:.4f}"
