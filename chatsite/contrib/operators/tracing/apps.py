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

        from . import exporting, notes

        exporting.begin_exporting(exporting.make_processor())
        plugins.call_ended.connect(notes.note_call)
        plugins.step_ended.connect(notes.note_step)
