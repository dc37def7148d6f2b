"""The app of comparisons, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CompareConfig(AppConfig):
    name = "chatsite.contrib.lab.compare"
    verbose_name = _("Comparisons of requests")

    def ready(self) -> None:
        from chatsite import plugins

        from . import parts

        plugins.conversation_parts["menu"].append(parts.draw_in_conversation_menu)
        plugins.message_parts.append(parts.COMPARE_ITEM)
        plugins.sent_parts.append(parts.draw_beside_sent)
        plugins.guide_answer = parts.draw_guide_answer
        plugins.inspector_parts.append(parts.draw_inspected_comparison)
