"""The chat app: turns, the socket and the pages."""

from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "chatsite.chat"
    verbose_name = "Chat"

    def ready(self) -> None:
        from . import checks  # noqa: F401  (registers the system checks)
