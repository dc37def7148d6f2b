"""The chat app: turns, the socket and the pages."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ChatConfig(AppConfig):
    name = "chatsite.chat"
    verbose_name = _("Chat")

    def ready(self) -> None:
        from . import checks  # noqa: F401  (registers the system checks)
