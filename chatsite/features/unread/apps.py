"""The app of what was not looked at, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class UnreadConfig(AppConfig):
    name = "chatsite.features.unread"
    verbose_name = _("Unread")

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import events, parts

        slots.register("person", parts.draw_unread)
        plugins.event_kinds["unread"] = events.Unread
        plugins.standing_events.append(events.list_standing_news)
        plugins.command_readers["seen"] = lambda value: events.Seen()
        plugins.turn_news.append(events.tell_of_turn)
        plugins.source_news.append(events.tell_of_source)
