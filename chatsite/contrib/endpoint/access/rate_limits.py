"""Rate limits per user for requests that count no turn."""

from django.conf import settings

from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.models import ApiKey
from chatsite.ops.pace import Pace
from chatsite.ops.processor_time import BURST_SECONDS, account_of_user

pace = Pace()


def limit_request_rate(owner_id: int, setting: str) -> None:
    """Count a request in this process by the limit of this setting.

    Raise ApiError for one too many, which is then not counted.
    """
    limit = getattr(settings, setting)
    if seconds := pace.count_request((setting, owner_id), limit):
        detail = (
            f"You may ask {limit:,} times a minute. Wait, and ask for more at once."
        )
        raise ApiError(429, "rate_limited", detail, retry_after=seconds)


def check_processor_share(key: ApiKey) -> None:
    """Raise ApiError for users above their share of the processor."""
    if seconds := account_of_user(key.owner_id).rest(BURST_SECONDS):
        detail = "Your requests have taken more than their share of this site's time."
        raise ApiError(429, "rate_limited", detail, retry_after=seconds)
