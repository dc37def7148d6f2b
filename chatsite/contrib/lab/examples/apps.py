"""The app of examples, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop


class ExamplesConfig(AppConfig):
    name = "chatsite.contrib.lab.examples"
    verbose_name = _("Examples")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import hooks
        from chatsite.protocol.errors import EXPLANATIONS
        from memory.actions import message_deleted
        from memory.models.change import LEAF_ACTIONS

        from . import answers, audit, exporting, parts, services
        from .models import ExampleAnswer

        message_deleted.connect(services.forget_examples)
        LEAF_ACTIONS[services.ACTION] = _("marked a reply as an example")
        hooks.message_parts.append(parts.MARK_ITEM)
        hooks.user_menu_links["examples"] = _("Examples")
        hooks.export_sections.append(exporting.SECTION)
        hooks.account_rows["examples"] = services.describe_own
        hooks.inspector_parts.append(parts.draw_inspected_examples)
        hooks.access_log_actions["example"] = _("marked as an example")
        hooks.access_log_actions.setdefault("export", _("exported"))
        hooks.access_log_names["example"] = _("example")
        hooks.access_log_names["list example"] = _("beginnings of examples (in a list)")
        hooks.spending_tables.append(ExampleAnswer)
        hooks.audit_rules.append(audit.find_misplaced_examples)
        EXPLANATIONS[answers.CANNOT_REBUILD] = gettext_noop(
            "The request can't be rebuilt, so it was not sent."
        )
        EXPLANATIONS[answers.TOO_MANY_SUMMARIES] = gettext_noop(
            "This policy would have to summarise too much for one answer."
        )
