"""Requests while the database is away.

ENDPOINT_WITHOUT_STORE says whether they are refused, or forwarded unchanged. A
forwarded request is not stored, and its answer says so. Nothing is ever shortened
without a record.
"""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from datetime import date

from cachetools import TTLCache
from django.conf import settings
from django.utils import timezone
from prometheus_client import Counter as Metric

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.models import ApiKey
from chatsite.contrib.endpoint.relay.client_connection import Connection
from chatsite.contrib.endpoint.relay.provider_answer import fetch_answer
from chatsite.contrib.endpoint.store.parsed_request import ParsedRequest

logger = logging.getLogger(__name__)

NOT_KEPT = Metric(
    "windowpane_endpoint_not_kept",
    "Requests of clients that were forwarded while nothing could be stored.",
)
# Keys that were valid a short time ago, by their hashes: how many, and for how long.
MAX_KEYS, KEY_SECONDS = 1_000, 300.0
RETRY_SECONDS = 60
_valid: TTLCache[str, ApiKey] = TTLCache(MAX_KEYS, KEY_SECONDS)
# Tokens that this process has forwarded on a day, by key and by user. No row counts
# them.
_forwarded: Counter[tuple[date, str, int]] = Counter()


def remember_key(key: str, found: ApiKey | None) -> None:
    """Cache a key that was just read; drop one that is no longer valid."""
    _valid.pop(keys.hash_key(key), None)
    if found is not None:
        _valid[keys.hash_key(key)] = found


def recall_key(key: str) -> ApiKey | None:
    """Return a key that was valid minutes ago here and has not expired since."""
    found = _valid.get(keys.hash_key(key))
    has_ended = found and found.expires_at and found.expires_at <= timezone.now()
    return None if has_ended else found


def admit_forwarding(key: ApiKey, request: ParsedRequest) -> None:
    """Count a request before it is sent.

    Raise CommandError where the key had no tokens left when it was last read, and
    ApiError where its owner has used a whole day's.
    """
    today = timezone.localdate()
    for each in [each for each in _forwarded if each[0] != today]:
        del _forwarded[each]
    keys.check_tokens(key, uncounted=_forwarded[today, "key", key.pk])
    budget = settings.TOKENS_PER_DAY
    if budget and _forwarded[today, "user", key.owner_id] >= budget:
        detail = "As much as you have for a day was forwarded while nothing is kept."
        raise ApiError(429, "quota", detail, retry_after=RETRY_SECONDS)
    _count_forwarded(key, request.tokens)


def _count_forwarded(key: ApiKey, tokens: int) -> None:
    today = timezone.localdate()
    _forwarded[today, "key", key.pk] += tokens
    _forwarded[today, "user", key.owner_id] += tokens


async def _count_chunks(
    key: ApiKey, chunks: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Yield the chunks and count them, with the JSON around the text."""
    async with aclosing(chunks) as open_chunks:
        async for chunk in open_chunks:
            _count_forwarded(key, -(-len(chunk) // 4))
            yield chunk


async def forward(
    key: ApiKey, request: ParsedRequest, headers: Mapping[str, str], client: Connection
) -> None:
    """Pass the request on unchanged.

    Raise ApiError where nothing was answered.
    """
    if request.previous or request.references:
        detail = "Whose reply that is can't be found out now. Send the whole history."
        raise ApiError(503, "unavailable", detail, retry_after=5)
    NOT_KEPT.inc()
    logger.error("request of a client forwarded and not kept: the store is away")
    answer = await client.run_unless_gone(fetch_answer(request, headers))
    answer.chunks = _count_chunks(key, answer.chunks)
    own = {
        "cache-control": "no-store",
        "x-windowpane-request-sha256": request.body.sha256,
        "x-windowpane-mode": "not-kept",
    }
    await client.pass_on(answer, own)
