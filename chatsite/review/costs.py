"""What tokens cost, by the prices of the settings; all as if none were cached."""

from typing import Any

from django.conf import settings
from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce


def has_prices() -> bool:
    return bool(settings.PRICE_INPUT or settings.PRICE_OUTPUT)


def cost(tokens_in: int, tokens_out: int) -> float | None:
    """Dollars; None where no prices are set."""
    if not has_prices():
        return None
    spent = tokens_in * settings.PRICE_INPUT + tokens_out * settings.PRICE_OUTPUT
    return spent / 1_000_000


def sums() -> dict[str, Any]:
    """Aggregates over model calls. What failed and reported nothing cost nothing."""
    billed = Q(error="") | Q(tokens_input__isnull=False)
    return {
        "requests": Count("pk"),
        "tokens_in": Sum(
            Coalesce("tokens_input", "tokens_estimated"), filter=billed, default=0
        ),
        "tokens_out": Sum("tokens_output", default=0),
        "tokens_cached": Sum("tokens_cached", default=0),
    }


def in_words(spent: float | None) -> str:
    """Small sums are what a call costs, so they keep their digits."""
    if spent is None:
        return "–"
    return f"${spent:,.2f}" if spent >= 1 else f"${spent:.4f}"
