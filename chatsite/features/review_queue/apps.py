"""The app of the review queue, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ReviewQueueConfig(AppConfig):
    name = "chatsite.features.review_queue"
    verbose_name = _("Review queue")
    admin_section = "desk"

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import parts, sources

        plugins.register_source("summary", sources.SUMMARIES)
        plugins.register_source("turn", sources.TURNS)
        slots.register("inspector", parts.draw_inspected)
        plugins.register_data(
            staff_actions={"queue": _("worked on an item of the review queue")},
            log_names={
                "queueitem": _("item of the review queue"),
                "list queueitem": _("beginnings of notes (in a list)"),
            },
        )
