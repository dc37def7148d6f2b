"""The app of feedback, and what it adds to the core."""

from functools import partial

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FeedbackConfig(AppConfig):
    name = "chatsite.features.feedback"
    verbose_name = _("Feedback")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from memory.integrity.audit import find_misplaced

        from . import export, parts, services, staff
        from .models import Feedback

        slots.register("message.actions", parts.draw_in_message, columns=parts.COLUMNS)
        slots.add_static_file("feedback/feedback.css", "conversation-page")
        plugins.register_socket(events=[parts.FeedbackEvent])
        slots.register("inspector", parts.draw_inspected)
        plugins.register_source("feedback", staff.BAD_FEEDBACK)
        plugins.register_data(
            name="feedback",
            title=_("feedback"),
            row=export.FeedbackRow,
            read=export.read_feedback,
            write=export.write_feedback,
            texts=Feedback.TEXTS,
            describe=export.describe_feedback,
            forget=services.forget_feedback,
            audit_rules=[
                partial(find_misplaced, Feedback, "R6.feedback", "feedback on")
            ],
            owner_actions={services.ACTION: _("gave feedback")},
            log_names={
                "feedback": _("feedback"),
                "list feedback": _("beginnings of feedback (in a list)"),
            },
        )
