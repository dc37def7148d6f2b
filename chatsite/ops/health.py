"""The pages for monitors: liveness, readiness, metrics."""

import asyncio
from collections.abc import Iterator

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db.models import Count, Min
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest

from chatsite.database import check_writable, is_read_only
from chatsite.protocol import layer
from chatsite.release import find_version
from chatsite.turns.models import Turn
from memory.database import TROUBLE

from .schema import find_missing_migrations

READY_SECONDS = 3.0


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive.

    The database and the other services are not asked.
    """
    return _answer_plain("ok")


@never_cache
@require_safe
async def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 if requests may be led here, else 503 with the missing part.

    Without its channel layer the site is slower, but complete.
    """
    missing = await _find_missing()
    if missing:
        response = _answer_plain(missing, status=503)
    else:
        sent = await layer.spread_to_processes("readyz", {"type": "readyz"})
        response = _answer_plain("ready" if sent else "degraded: channel layer")
    # So that one sees which processes an upgrade has come to.
    response["Windowpane-Version"] = find_version()
    return response


async def _find_missing() -> str:
    """Return the name of what requests would lack; "" where nothing is missing."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            migrated = await sync_to_async(_is_migrated)()
    except (TimeoutError, TROUBLE) as error:
        return "database is read-only" if is_read_only(error) else "database"
    return "" if migrated else "migrations"


def _answer_plain(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(text, content_type="text/plain", status=status)


_migrated = False


def _is_migrated() -> bool:
    """Return True once no migrations are missing.

    From then on each call checks that the database can be written to.
    """
    global _migrated
    _migrated = _migrated or not find_missing_migrations()
    if _migrated:
        check_writable()
    return _migrated


@never_cache
@require_safe
def show_metrics(request: HttpRequest) -> HttpResponse:
    """Return metrics for Prometheus, with METRICS_TOKEN as bearer token.

    Without that setting there is no such page.
    """
    if not settings.METRICS_TOKEN:
        raise Http404
    sent = request.headers.get("Authorization", "")
    if not constant_time_compare(sent, f"Bearer {settings.METRICS_TOKEN}"):
        response = _answer_plain("unauthorized", status=401)
        response["WWW-Authenticate"] = "Bearer"
        return response
    body = generate_latest(REGISTRY) + generate_latest(_database)
    return HttpResponse(body, content_type=CONTENT_TYPE_LATEST)


class _Turns:
    """The turns of all processes, counted when Prometheus asks for them."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        up = GaugeMetricFamily("windowpane_database_up", "Whether it answers.")
        try:
            families = self._read()
        except TROUBLE:
            families = []
        up.add_metric([], float(bool(families)))
        yield from [up, *families]

    def _read(self) -> list[GaugeMetricFamily]:
        rows = Turn.objects.filter(state__one_of=Turn.UNFINISHED).order_by()
        counted = rows.values("state").annotate(n=Count("pk"), since=Min("created_at"))
        found = {row["state"]: row for row in counted}
        turns = GaugeMetricFamily(
            "windowpane_turns", "Turns that are not finished.", labels=["state"]
        )
        for state in Turn.UNFINISHED:
            turns.add_metric([state], found[state]["n"] if state in found else 0)
        age = 0.0
        if waiting := found.get(Turn.State.QUEUED):
            age = max(0.0, (timezone.now() - waiting["since"]).total_seconds())
        oldest = GaugeMetricFamily(
            "windowpane_queue_oldest_seconds",
            "Age of the oldest turn that waits.",
            value=age,
        )
        return [turns, oldest]


_database = CollectorRegistry()
_database.register(_Turns())
