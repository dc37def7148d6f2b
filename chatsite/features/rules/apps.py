"""The app of rules, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RulesConfig(AppConfig):
    name = "chatsite.features.rules"
    verbose_name = _("Rules")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import hooks
        from memory.actions import message_deleted
        from memory.models.change import LEAF_ACTIONS
        from memory.rules import rule_source

        from . import audit, export, forms, parts, services, store

        rule_source.current = store.StatedRules()
        message_deleted.connect(store.forget_rules)
        LEAF_ACTIONS.update(services.ACTIONS)
        hooks.export_sections.append(export.SECTION)
        hooks.branch_parts.append(export.copy_rules)
        hooks.message_parts.append(parts.STATED)
        hooks.section_bodies["rules"] = parts.draw_section
        hooks.context_parts.append(parts.draw_other_rules)
        hooks.stylesheets.append("rules/rules.css")
        hooks.first_use_styles["model"].append("rules/rule-sheet.css")
        hooks.policy_fields["rules"] = forms.make_policy_field
        hooks.preference_fields.update(forms.PREFERENCE_FIELDS)
        hooks.access_log_names["rule"] = _("rule")
        hooks.audit_rules += [audit.find_bad_rules, audit.find_missing_rules]
