"""The app of what was not looked at, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class UnreadConfig(AppConfig):
    name = "chatsite.features.unread"
    verbose_name = _("Unread")

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import events, parts

        slots.register("user", parts.draw_unread)
        slots.add_static_file("unread/unread.js", "list-page")
        slots.add_static_file("unread/news.js", "unread")
        plugins.register_socket(
            events=[events.Unread],
            commands={"seen": lambda value: events.SeenCommand()},
            find_standing=events.list_standing_news,
        )
        plugins.turn_ended.connect(events.tell_of_turn)
        plugins.news_found.connect(events.tell_of_reminder)
