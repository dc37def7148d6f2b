"""The app of facts, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FactsConfig(AppConfig):
    name = "chatsite.features.facts"
    verbose_name = _("Facts about people")

    def ready(self) -> None:
        from django.db.models.signals import pre_delete

        from chatsite import plugins
        from memory.actions import message_deleted
        from memory.models.change import LEAF_ACTIONS
        from memory.rules import rule_source

        from . import audit, export, forms, models, parts, services, store

        rule_source.facts = store.StatedFacts()
        message_deleted.connect(store.forget_facts)
        pre_delete.connect(store.forget_sent, sender=models.Fact)
        LEAF_ACTIONS.update(services.ACTIONS)
        plugins.message_parts.append(parts.STATED)
        plugins.section_bodies["facts"] = parts.draw_facts_section
        plugins.first_use_styles["model"].append("facts/facts.css")
        plugins.policy_fields["facts"] = forms.make_fact_policy_field
        plugins.preference_fields["facts"] = forms.make_fact_preference_field
        plugins.user_menu_links["facts"] = _("What is remembered of you")
        plugins.export_sections.append(export.SECTION)
        plugins.account_rows["facts"] = services.describe_facts
        plugins.audit_rules.append(audit.find_bad_facts)
