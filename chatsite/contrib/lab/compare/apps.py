"""The app of comparisons, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CompareConfig(AppConfig):
    name = "chatsite.contrib.lab.compare"
    verbose_name = _("Comparisons of requests")

    def ready(self) -> None:
        from chatsite import slots

        from . import parts

        slots.register("conversation.look", parts.draw_in_conversation_menu)
        slots.register("message.more", parts.draw_compare_item)
        slots.register("sent", parts.draw_beside_sent)
        slots.register("inspector", parts.draw_inspected_comparison)
