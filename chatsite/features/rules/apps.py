"""The app of rules, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RulesConfig(AppConfig):
    name = "chatsite.features.rules"
    verbose_name = _("Rules")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from memory.rules import rule_source

        from . import audit, export, forms, models, parts, services, store

        rule_source.sources["rules"] = store.StatedRules()
        slots.register("message.below", parts.draw_stated_rules, rows=parts.ROWS)
        slots.register("section.rules", "rules/_section.html")
        slots.register("next", parts.draw_other_rules)
        slots.add_static_file("rules/rules.css", "conversation-page")
        slots.add_static_file("rules/rule-sheet.css", "model")
        plugins.register_field("policy", "rules", forms.make_policy_field)
        for name, make in forms.PREFERENCE_FIELDS.items():
            plugins.register_field("preferences", name, make)
        plugins.register_data(
            name="rules",
            title=_("rules"),
            row=export.RuleRow,
            read=export.read_rules,
            write=export.write_rules,
            texts=models.Rule.TEXTS,
            copy=export.copy_rules,
            forget=store.forget_rules,
            audit_rules=(audit.find_bad_rules, audit.find_missing_rules),
            owner_actions=services.ACTIONS,
            changing_actions=services.CHANGING,
            log_names={"rule": _("rule")},
        )
