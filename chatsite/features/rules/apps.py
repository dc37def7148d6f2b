"""The app of rules, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RulesConfig(AppConfig):
    name = "chatsite.features.rules"
    verbose_name = _("Rules")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import plugins
        from memory.actions import message_deleted
        from memory.models.change import LEAF_ACTIONS
        from memory.rules import rule_source

        from . import audit, export, forms, parts, services, store

        rule_source.current = store.StatedRules()
        message_deleted.connect(store.forget_rules)
        LEAF_ACTIONS.update(services.ACTIONS)
        plugins.export_sections.append(export.SECTION)
        plugins.branch_parts.append(export.copy_rules)
        plugins.message_parts.append(parts.STATED)
        plugins.section_bodies["rules"] = parts.draw_section
        plugins.context_parts.append(parts.draw_other_rules)
        plugins.stylesheets.append("rules/rules.css")
        plugins.first_use_styles["model"].append("rules/rule-sheet.css")
        plugins.policy_fields["rules"] = forms.make_policy_field
        plugins.preference_fields.update(forms.PREFERENCE_FIELDS)
        plugins.access_log_names["rule"] = _("rule")
        plugins.audit_rules += [audit.find_bad_rules, audit.find_missing_rules]
