"""The app of feedback, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FeedbackConfig(AppConfig):
    name = "chatsite.features.feedback"
    verbose_name = _("Feedback")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import hooks
        from memory.actions import message_deleted
        from memory.models.change import LEAF_ACTIONS

        from . import audit, export, parts, services, staff

        message_deleted.connect(services.forget_feedback)
        LEAF_ACTIONS[services.ACTION] = _("gave feedback")
        hooks.export_sections.append(export.SECTION)
        hooks.message_parts.append(parts.BUTTONS)
        hooks.stylesheets.append("feedback/feedback.css")
        hooks.event_kinds[parts.FeedbackGiven.type] = parts.FeedbackGiven
        hooks.inspector_parts.append(parts.draw_inspected)
        hooks.access_log_names["feedback"] = _("feedback")
        hooks.access_log_names["list feedback"] = _(
            "beginnings of feedback (in a list)"
        )
        hooks.review_sources["feedback"] = staff.BAD_FEEDBACK
        hooks.audit_rules.append(audit.find_misplaced_feedback)
