"""The app of turns, with the tables of the chat."""

from django.apps import AppConfig
from django.core.signals import request_finished
from django.db.backends.signals import connection_created
from django.utils.translation import gettext_lazy as _

from chatsite import metrics
from chatsite.database import close_connection, watch_values


class TurnsConfig(AppConfig):
    name = "chatsite.turns"
    # The tables were named before the package; existing databases keep them.
    label = "chat"
    verbose_name = _("Chat")

    def ready(self) -> None:
        connection_created.connect(watch_values)
        request_finished.connect(close_connection)
        from chatsite import plugins
        from memory.actions import message_deleted

        from .models import Turn
        from .requests import refuse_other_writers

        message_deleted.connect(Turn.clear_text)
        plugins.register_guard("send", refuse_other_writers)
        # An alert on what has not happened yet needs a zero to count from.
        for state in {*Turn.State} - {*Turn.UNFINISHED}:
            metrics.TURNS_ENDED.labels(state)
