"""The app of examples, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop


class ExamplesConfig(AppConfig):
    name = "chatsite.contrib.lab.examples"
    verbose_name = _("Examples")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from chatsite.protocol.errors import EXPLANATIONS
        from memory.actions import message_deleted
        from memory.models.change import LEAF_ACTIONS

        from . import answers, audit, exporting, parts, services
        from .models import ExampleAnswer

        message_deleted.connect(services.forget_examples)
        LEAF_ACTIONS[services.ACTION] = _("marked a reply as an example")
        slots.register("message.menu", parts.draw_mark_item)
        slots.register("user.menu", slots.make_link("examples", _("Examples")))
        plugins.export_sections.append(exporting.SECTION)
        plugins.account_rows["examples"] = services.describe_own
        slots.register("inspector", parts.draw_inspected_examples)
        plugins.access_log_actions["example"] = _("marked as an example")
        plugins.access_log_actions.setdefault("export", _("exported"))
        plugins.access_log_names["example"] = _("example")
        plugins.access_log_names["list example"] = _(
            "beginnings of examples (in a list)"
        )
        plugins.spending_tables.append(ExampleAnswer)
        plugins.audit_rules.append(audit.find_misplaced_examples)
        EXPLANATIONS[answers.CANNOT_REBUILD] = gettext_noop(
            "The request can't be rebuilt, so it was not sent."
        )
        EXPLANATIONS[answers.TOO_MANY_SUMMARIES] = gettext_noop(
            "This policy would have to summarise too much for one answer."
        )
