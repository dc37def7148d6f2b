"""The app of what was not looked at, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class UnreadConfig(AppConfig):
    name = "chatsite.features.unread"
    verbose_name = _("Unread")

    def ready(self) -> None:
        from chatsite import hooks

        from . import events, parts

        hooks.person_parts.append(parts.draw_unread)
        hooks.event_kinds["unread"] = events.Unread
        hooks.standing_events.append(events.list_standing_news)
        hooks.command_readers["seen"] = lambda value: events.Seen()
        hooks.turn_news.append(events.tell_of_turn)
        hooks.source_news.append(events.tell_of_source)
