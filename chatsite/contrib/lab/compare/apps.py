"""The app of comparisons, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CompareConfig(AppConfig):
    name = "chatsite.contrib.lab.compare"
    verbose_name = _("Comparisons of requests")

    def ready(self) -> None:
        from chatsite import hooks

        from . import parts

        hooks.conversation_parts["menu"].append(parts.draw_in_conversation_menu)
        hooks.message_parts.append(parts.COMPARE_ITEM)
        hooks.sent_parts.append(parts.draw_beside_sent)
        hooks.guide_answer = parts.draw_guide_answer
        hooks.inspector_parts.append(parts.draw_inspected_comparison)
