"""Requests while the store is away: by ENDPOINT_WITHOUT_STORE they are refused, or
forwarded as they are. Nothing of a forwarded one is kept, and it says so; nothing is
ever shortened without a record.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Mapping

from django.utils import timezone
from prometheus_client import Counter

from chatsite.endpoint import keys
from chatsite.endpoint.models import ApiKey
from chatsite.endpoint.relay.answering import fetch_answer
from chatsite.endpoint.relay.client import Client
from chatsite.endpoint.store.asked import Asked
from chatsite.endpoint.wires.errors import WireError

logger = logging.getLogger(__name__)

NOT_KEPT = Counter(
    "windowpane_endpoint_not_kept",
    "Requests of clients that were forwarded while nothing could be stored.",
)
# Of keys that were valid a short time ago, by their hashes: how many, and for how long.
MOST_KEYS, KEY_SECONDS = 1_000, 300.0
_valid: OrderedDict[str, tuple[ApiKey, float]] = OrderedDict()


def remember_key(key: str, found: ApiKey | None) -> None:
    """What was just read of a key; a key that lets no one in is forgotten at once."""
    name = keys.hash_key(key)
    _valid.pop(name, None)
    if found is not None:
        _valid[name] = found, time.monotonic()
        while len(_valid) > MOST_KEYS:
            _valid.popitem(last=False)


def recall_key(key: str) -> ApiKey | None:
    """A key that was valid minutes ago, in this process, and has not expired since."""
    found, at = _valid.get(keys.hash_key(key), (None, 0.0))
    if found is None or time.monotonic() - at >= KEY_SECONDS:
        return None
    return None if found.expires_at and found.expires_at <= timezone.now() else found


async def forward(asked: Asked, headers: Mapping[str, str], client: Client) -> None:
    """Pass the request on as it is. Raises WireError where nothing was answered."""
    if asked.previous:
        detail = "Whose reply that is can't be found out now. Send the whole history."
        raise WireError(503, "unavailable", detail, retry_after=5)
    NOT_KEPT.inc()
    logger.error("request of a client forwarded and not kept: the store is away")
    answer = await client.unless_gone(fetch_answer(asked, headers))
    own = {
        "cache-control": "no-store",
        "x-windowpane-request-sha256": asked.body.sha256,
        "x-windowpane-mode": "not-kept",
    }
    await client.pass_on(answer, own)
