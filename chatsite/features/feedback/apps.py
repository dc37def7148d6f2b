"""The app of feedback, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FeedbackConfig(AppConfig):
    name = "chatsite.features.feedback"
    verbose_name = _("Feedback")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from memory.actions import message_deleted
        from memory.models.change import LEAF_ACTIONS

        from . import audit, export, parts, services, staff

        message_deleted.connect(services.forget_feedback)
        LEAF_ACTIONS[services.ACTION] = _("gave feedback")
        plugins.export_sections.append(export.SECTION)
        slots.register("message.actions", parts.draw_in_message, columns=parts.COLUMNS)
        slots.add_stylesheet("feedback/feedback.css", "conversation")
        plugins.event_kinds[parts.FeedbackGiven.type] = parts.FeedbackGiven
        slots.register("inspector", parts.draw_inspected)
        plugins.access_log_names["feedback"] = _("feedback")
        plugins.access_log_names["list feedback"] = _(
            "beginnings of feedback (in a list)"
        )
        plugins.review_sources["feedback"] = staff.BAD_FEEDBACK
        plugins.audit_rules.append(audit.find_misplaced_feedback)
