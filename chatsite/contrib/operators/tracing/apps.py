"""The app of tracing. Without a collector it adds nothing to the core."""

from django.apps import AppConfig
from django.conf import settings


class TracingConfig(AppConfig):
    name = "chatsite.contrib.operators.tracing"

    def ready(self) -> None:
        from . import checks

        if not settings.OTEL_EXPORTER_OTLP_ENDPOINT or not checks.is_installed():
            return
        from chatsite import plugins

        from . import span_export, spans

        span_export.begin_exporting(span_export.make_processor())
        plugins.call_ended.connect(spans.note_call)
        plugins.step_ended.connect(spans.note_step)
