"""Refusals, in words that each API sends in its own form."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# The HTTP statuses of the site's limits.
STATUSES = {"rate_limited": 429, "quota": 429, "queue_full": 429, "too_long": 413}
BAD_KEY = (
    "The API key is missing or is not valid: it is wrong, has expired or was revoked, "
    "or its account is locked. Make a new one on your account page."
)


@dataclass
class ApiError(Exception):
    """A request that this site answers with an error.

    `detail` says what is wrong and what to do.
    """

    status: int
    code: str
    detail: str
    retry_after: float | None = None
    # The field of the body that is wrong, if the API has a field for its name.
    param: str | None = None
    # More headers of the answer.
    headers: Mapping[str, str] = field(default_factory=dict)


def refuse_key() -> ApiError:
    """Return the one error for all keys that are refused."""
    return ApiError(401, "invalid_api_key", BAD_KEY)


def refuse_body(most: int) -> ApiError:
    detail = f"A body may have {most:,} bytes. Send less."
    return ApiError(413, "too_large", detail)


def refuse_model(name: str) -> ApiError:
    """Return the error for a missing model and for one that the user may not use.

    It does not say which of the two.
    """
    text = (
        "The model {!r} is not yours to use here. GET /v1/models lists those that are."
    )
    return ApiError(403, "model_not_allowed", text.format(name[:100]))


def refuse_switched_off(name: str) -> ApiError:
    text = "The model {!r} is switched off on this site for now. Choose another one."
    return ApiError(403, "model_off", text.format(name[:100]))
