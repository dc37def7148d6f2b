"""The metrics of this process, for Prometheus.

Labels are words of this site, never a text, a name or an id.
"""

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram, Info

from .release import find_version

if TYPE_CHECKING:
    from .turns.lifecycle import TurnResult

Info("windowpane", "The release that runs.").info({"version": find_version()})

SECONDS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600)

TURNS_ENDED = Counter("windowpane_turns_ended", "Turns that ended here.", ["state"])
FIRST_TOKEN = Histogram(
    "windowpane_first_token_seconds",
    "From the request to the first token of a reply.",
    buckets=SECONDS,
)
REPLY = Histogram(
    "windowpane_reply_seconds",
    "From the request to the end of a reply.",
    buckets=SECONDS,
)
MODEL_REQUESTS = Counter(
    "windowpane_model_requests", "Requests to a model.", ["purpose", "outcome"]
)
COMPACTIONS = Counter(
    "windowpane_compactions", "Compactions that were tried.", ["result"]
)
FRAMES = Counter("windowpane_frames", "Pieces of replies sent to sockets.")
LOOP_DELAY = Histogram(
    "windowpane_loop_delay_seconds",
    "How late the event loop of this process comes to its work.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
REQUESTS_REFUSED = Counter(
    "windowpane_requests_refused", "HTTP requests that waited in vain for a place."
)
SOCKETS = Gauge("windowpane_sockets", "Open sockets of this process.")
SOCKETS_CUT = Counter(
    "windowpane_sockets_cut", "Sockets that the site closed.", ["reason"]
)
LAYER_FAILURES = Counter(
    "windowpane_layer_failures", "Calls of the channel layer that failed."
)
REFUSALS = Counter("windowpane_refusals", "Commands that were refused.", ["code"])


def note_request(purpose: str, error: str = "") -> None:
    # Without the provider's own word, of which there may be any number.
    MODEL_REQUESTS.labels(purpose, error.partition(":")[0] or "ok").inc()


def note_reply(result: "TurnResult") -> None:
    """Record how the request for a reply ended, and how long it took."""
    note_request("reply", result.error)
    REPLY.observe(result.total_ms / 1000)
    if result.first_token_ms is not None:
        FIRST_TOKEN.observe(result.first_token_ms / 1000)
