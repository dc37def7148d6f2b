"""The export to the collector.

Spans wait in a bounded queue, and a thread of the library sends them. While the
collector is away, they are dropped.
"""

import atexit
from typing import Any

from django.conf import settings
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from chatsite.release import find_version

# The collector gets as long for one batch, also where the process ends.
SECONDS = 5
SCOPE = InstrumentationScope("windowpane", find_version())


class _Way:
    """The processor of spans, and the description of this process in each."""

    processor: SpanProcessor | None = None
    resource: Resource | None = None


def make_processor() -> SpanProcessor:
    """Return the processor for the collector of the settings.

    The library itself reads headers and other OTEL_… settings.
    """
    address = settings.OTEL_EXPORTER_OTLP_ENDPOINT.rstrip("/")
    return BatchSpanProcessor(OTLPSpanExporter(f"{address}/v1/traces", timeout=SECONDS))


def begin_exporting(processor: SpanProcessor) -> None:
    named = {"service.name": "windowpane", "service.version": find_version()}
    # Those of OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME come first.
    _Way.resource = Resource(named).merge(Resource.create())
    _Way.processor = processor
    atexit.register(processor.shutdown)


def export_span(name: str, **values: Any) -> None:
    """Hand on a span that has ended; it never waits."""
    if _Way.processor:
        span = ReadableSpan(
            name, resource=_Way.resource, instrumentation_scope=SCOPE, **values
        )
        _Way.processor.on_end(span)
