"""Checks of the settings of tracing."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


def is_installed() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:  # one of the packages that it is in
        return False


@register()
def check_collector(**kwargs: Any) -> Iterator[CheckMessage]:
    if settings.OTEL_EXPORTER_OTLP_ENDPOINT and not is_installed():
        yield Error(
            "OTEL_EXPORTER_OTLP_ENDPOINT: the libraries of OpenTelemetry are missing.",
            hint="pip install --requirement requirements/tracing.lock",
            id="chat.E010",
        )
