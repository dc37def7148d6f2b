"""The app of operations: system checks and management commands; no tables."""

from django.apps import AppConfig


class OpsConfig(AppConfig):
    name = "chatsite.ops"

    def ready(self) -> None:
        from . import checks  # noqa: F401  (registers the system checks)
